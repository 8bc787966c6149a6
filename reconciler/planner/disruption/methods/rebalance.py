"""Method: drains nodes that EC2 recommends to leave or has scheduled a change for.

They are drained once something takes their pods. If EC2 takes the instance within minutes,
`interrupted` empties the node regardless of limits.
"""

from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.voluntary_run import VoluntaryRun


def selects(candidate: Candidate) -> bool:
    """Return whether EC2 has announced something about its instance that is not in force yet."""
    return candidate.reason == "rebalance"


def propose(run: VoluntaryRun) -> None:
    """Drain the selected nodes as far as the limits allow, the earliest announcement first."""
    run.drain(selects)
