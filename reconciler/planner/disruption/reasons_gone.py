"""Why a drain that is under way is given back: what began it holds no more."""

from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.state import Disruption
from reconciler.planner.view import ClusterView


def reason_gone(view: ClusterView, node: Node, key: FleetKey, drain: Disruption) -> Blocker | None:
    """Return why the reason of a drain holds no more; None while it holds, and for other drains.

    Args:
        view: The facts.
        node: The node that drains.
        key: Its fleet.
        drain: Its drain.
    """
    if drain.policy == "interruption":
        return _notice_gone(view, node)
    return _update_halted(view, key) if drain.policy == "rolling-update" else None


def _notice_gone(view: ClusterView, node: Node) -> Blocker | None:
    """Return why a node stays that EC2 had recommended to leave, or was to change later.

    AWS Health has cancelled the change, or its time has passed; the notice was taken off the node;
    or recommendations are passed over now.
    """
    if node.name in view.inventory.noticed:
        return None
    return Blocker("notice-gone", "no notice of EC2 asks for its drain any more")


def _update_halted(view: ClusterView, key: FleetKey) -> Blocker | None:
    """Return why a node stays whose drain a rolling update began that was halted since.

    What is left there would move to nodes that do not work; given back, the node can take again
    what has moved.
    """
    update = view.inventory.updates.get(key)
    if update is None or not update.halted:
        return None
    because = f"the rolling update is halted: {update.because}"
    return Blocker("rolling-update-halted", because)
