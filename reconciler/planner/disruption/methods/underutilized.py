"""Method: drains nodes whose pods request little, or may bounce, if every pod fits elsewhere."""

from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.voluntary_run import VoluntaryRun


def selects(candidate: Candidate) -> bool:
    """Return whether the node's use is below `utilization_threshold`, or its pods may bounce."""
    return candidate.reason == "underutilized"


def propose(run: VoluntaryRun) -> None:
    """Drain the selected nodes as far as the limits allow."""
    run.drain(selects)
