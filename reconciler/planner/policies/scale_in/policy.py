"""The order of scale-in (behaviour, section 5)."""

from reconciler.planner.cycle import Cycle
from reconciler.planner.policies.scale_in.empty import remove_empty
from reconciler.planner.policies.scale_in.leave import finish_leaving


def propose(cycle: Cycle) -> None:
    """End what was being emptied, then begin with nodes that have been empty long enough."""
    finish_leaving(cycle)
    remove_empty(cycle)
