"""Nodes whose pods ask for little, or may bounce: drained when every pod fits elsewhere."""

from reconciler.planner.disruption.candidates import Candidate
from reconciler.planner.disruption.voluntary import VoluntaryRun


def selects(candidate: Candidate) -> bool:
    """Return whether the node's use is below `utilization_threshold`, or its pods may bounce."""
    return candidate.reason == "underutilized"


def propose(run: VoluntaryRun) -> None:
    """Drain such nodes as far as the limits allow."""
    run.drain(selects)
