"""Nodes older than their fleet's `expire_after`: drained when what takes their pods is there.

Where nothing else takes the pods, one node is asked for in the place of each
(`planner.fleets.outdated` says which nodes these are).
"""

from reconciler.planner.disruption.candidates import Candidate
from reconciler.planner.disruption.voluntary import VoluntaryRun


def selects(candidate: Candidate) -> bool:
    """Return whether the node has expired."""
    return candidate.reason == "expired"


def propose(run: VoluntaryRun) -> None:
    """Drain such nodes as far as the limits allow, the oldest first."""
    run.drain(selects)
