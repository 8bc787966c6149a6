"""The guard that stands whatever else is wrong: no target beyond what the plan can account for."""

from reconciler.model.errors import InvariantViolated
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.fleets.inventory import FleetStatus


def check_target(builder: PlanBuilder, status: FleetStatus) -> None:
    """A target never exceeds what is there and owed, plus the new nodes that this plan names.

    The minimum, with what drains on top, is asked for in any case.

    Raises:
        InvariantViolated: It does: a bug of ours, and better no plan than a runaway.
    """
    target = builder.targets[status.key]
    new = builder.new_nodes(status.key)
    there = max(status.joined_or_launching, len(status.nodes))
    # Nodes that leave for good are replaced up to the minimum even while none can be launched.
    most = max(there + new, status.min + len(status.draining))
    if target > most:
        raise InvariantViolated(
            f"fleet {status.key}",
            f"its target would be {target}: it holds or is owed {there}, the plan names "
            f"{new} new nodes and min_capacity is {status.min}",
            "nothing was done; please report it with a snapshot",
        )
