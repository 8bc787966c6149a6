"""Nodes that EC2 recommends to leave, and those for which it has scheduled a change for later.

They are drained when what takes their pods is there. Once EC2 takes the instance within minutes
`interrupted` empties the node whatever limits say.
"""

from reconciler.planner.disruption.candidates import Candidate
from reconciler.planner.disruption.voluntary import VoluntaryRun


def selects(candidate: Candidate) -> bool:
    """Return whether EC2 has announced something about its instance that is not in force."""
    return candidate.reason == "rebalance"


def propose(run: VoluntaryRun) -> None:
    """Drain such nodes as far as the limits allow, the earliest announcement first."""
    run.drain(selects)
