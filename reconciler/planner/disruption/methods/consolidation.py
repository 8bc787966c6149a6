"""Method: drains well-used nodes if moving their pods saves enough money.

The pods go to nodes that stay, or to one cheaper node that is asked for first
(`disruption.replacement`).
"""

from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.voluntary_run import VoluntaryRun


def selects(candidate: Candidate) -> bool:
    """Return whether it is a candidate only because the config asks for consolidation."""
    return candidate.reason == "consolidation"


def propose(run: VoluntaryRun) -> None:
    """Drain the selected nodes as far as the limits allow."""
    run.drain(selects)
