"""Method: drains nodes of fleets whose removal or replacement was approved, at any cost of moves.

If nothing else takes the pods, nodes of fleets that stay are asked for.
"""

from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.voluntary_run import VoluntaryRun


def selects(candidate: Candidate) -> bool:
    """Return whether the node's fleet is departing."""
    return candidate.outdated is None and candidate.status.settings.departing


def propose(run: VoluntaryRun) -> None:
    """Drain the selected nodes as far as the limits allow."""
    run.drain(selects)
