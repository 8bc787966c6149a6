"""Method: drains nodes older than their fleet's `expire_after`, once something takes their pods.

If nothing else does, one node is asked for to replace each (`planner.fleets.updates.outdated` says
which nodes these are).
"""

from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.voluntary_run import VoluntaryRun


def selects(candidate: Candidate) -> bool:
    """Return whether the node has expired."""
    return candidate.reason == "expired"


def propose(run: VoluntaryRun) -> None:
    """Drain the selected nodes as far as the limits allow, the oldest first."""
    run.drain(selects)
