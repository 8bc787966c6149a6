"""Nodes of fleets whose removal or replacement was approved: their pods move at any price.

Where nothing else takes the pods, nodes of fleets that stay are asked for in their place.
"""

from reconciler.planner.disruption.candidates import Candidate
from reconciler.planner.disruption.voluntary import VoluntaryRun


def selects(candidate: Candidate) -> bool:
    """Return whether the node's fleet is to go."""
    return candidate.outdated is None and candidate.status.settings.departing


def propose(run: VoluntaryRun) -> None:
    """Drain such nodes as far as the limits allow."""
    run.drain(selects)
