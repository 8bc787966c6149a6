"""Decides which drains are cancelled because their reason no longer applies."""

from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.node_disruption import Disruption
from reconciler.planner.view import ClusterView


def reason_gone(view: ClusterView, node: Node, key: FleetKey, drain: Disruption) -> Blocker | None:
    """Return why the reason for the drain no longer applies; None while it does.

    Only drains for a notice and for a rolling update have a reason that can end.

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
    """Return why a node is not drained any more for EC2's recommendation or a scheduled change.

    AWS Health has cancelled the change, or its time has passed; the notice was removed from the
    node; or the config now ignores recommendations.
    """
    if node.name in view.inventory.noticed:
        return None
    return Blocker("notice-gone", "no notice of EC2 asks for its drain any more")


def _update_halted(view: ClusterView, key: FleetKey) -> Blocker | None:
    """Return why a node is not drained any more for a rolling update; None unless that was halted.

    The pods that are left would move to nodes that do not work. Once given back, the node can take
    its pods again.
    """
    update = view.inventory.updates.get(key)
    if update is None or not update.halted:
        return None
    because = f"the rolling update is halted: {update.because}"
    return Blocker("rolling-update-halted", because)
