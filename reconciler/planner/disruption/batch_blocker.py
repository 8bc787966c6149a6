"""What keeps a node out of a batch whose nodes are drained once their replacements have joined."""

from reconciler.model.cluster import Node
from reconciler.model.text import duration
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.nodes import first_blocker
from reconciler.planner.disruption.blockers.pods import movable
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.actions import rests_until
from reconciler.planner.fleets.inventory import FleetStatus


def batch_blocker(
    context: DisruptionContext, node: Node, status: FleetStatus, *, must_go: bool
) -> Blocker | None:
    """Return what would prevent the node's drain once its replacement has joined; None if nothing.

    Args:
        context: The limits of this plan.
        node: The node.
        status: Its fleet.
        must_go: Whether it is to be replaced whatever that costs.
    """
    view = context.view
    rests = rests_until(view, node)
    if rests is not None:
        detail = f"its last drain failed: tried again in {duration(rests - view.at)}"
        return Blocker("drain-cool-off", detail, rests)
    blocker = first_blocker(view, node, status) or context.sets.blocker(node.name)
    if blocker is not None:
        return blocker
    moving, _, blocked = movable(context.judge(status.settings), view.pods_on.get(node.name, []))
    return blocked or context.ledger.drain_blocker(moving, must_go=must_go)
