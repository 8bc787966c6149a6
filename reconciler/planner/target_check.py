"""A final check: no target may exceed what the plan accounts for."""

from reconciler.model.errors import InvariantViolated
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.fleets.inventory import FleetStatus


def check_target(builder: PlanBuilder, status: FleetStatus) -> None:
    """Check that the target is at most the existing and launching nodes plus this plan's new ones.

    The minimum, plus draining nodes, may always be asked for.

    Raises:
        InvariantViolated: It is higher, which is a bug; no plan is better than a wrong one.
    """
    target = builder.targets[status.key]
    new = builder.new_nodes(status.key)
    inventory = builder.view.inventory
    own = (n for n in status.nodes if not inventory.is_unseen(n, status.key))
    there = max(status.joined_or_launching, sum(n.name not in status.set_aside for n in own))
    # Nodes that leave for good are replaced up to the minimum even while none can be launched.
    most = max(there + new, status.min + len(status.draining))
    if target > most:
        raise InvariantViolated(
            f"fleet {status.key}",
            f"its target would be {target}: it holds or is owed {there}, the plan names "
            f"{new} new nodes and min_capacity is {status.min}",
            "nothing was done; please report it with a snapshot",
        )
