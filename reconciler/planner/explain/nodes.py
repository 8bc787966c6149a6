"""Why a node stays or leaves."""

from collections.abc import Sequence

from reconciler.model.actions import (
    DRAINING_TAINT,
    AnyAction,
    DeleteNode,
    DeletePod,
    EvictPod,
    SetCapacity,
    TerminateInstance,
    begins_drain,
    ends_drain,
)
from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import NodeName
from reconciler.model.plan import Plan
from reconciler.model.text import counted_noun
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blockers.nodes import first_blocker
from reconciler.planner.disruption.blockers.pods import movable
from reconciler.planner.disruption.drains.actions import terms_of
from reconciler.planner.disruption.drains.idleness import counted
from reconciler.planner.disruption.node_disruption import disruption_of
from reconciler.planner.explain.answers import NodeExplanation, NodeVerdict
from reconciler.planner.explain.held import held_in_words
from reconciler.planner.fleets.updates.drift import drift_of
from reconciler.planner.nodes.drain_taints import is_draining, is_draining_by_us
from reconciler.planner.rules import judge_of

SHOWN_PODS = 10


def explain_node(builder: PlanBuilder, made: Plan, node: Node) -> NodeExplanation:
    """Return the explanation of a node from a finished plan."""
    view = builder.view
    key = view.inventory.fleet_of_node.get(node.name)
    verdict, code, because = verdict_of(builder, made, node)
    busy = counted(view.pods_on.get(node.name, ()))
    stays = builder.on_demand.get(node.name)
    if stays is not None and verdict != "leaves" and stays.detail != because:
        because += f"; its pods do not move to spot nodes ({stays.code}): {stays.detail}"
    return NodeExplanation(
        node=node.name,
        verdict=verdict,
        code=code,
        because=because,
        fleet=key.name if key else "",
        actions=_actions(made, node.name),
        pods=tuple(sorted(pod.key for pod in busy)),
        disruption=disruption_of(view, node) if key is not None else None,
        drift=_drift(builder, node),
    )


def _drift(builder: PlanBuilder, node: Node) -> str:
    """Return what is known about its drift; empty if no fleet launched it, or without EC2."""
    if builder.view.snapshot.cloud is None:
        return ""
    inventory = builder.view.inventory
    key = inventory.fleet_of_node.get(node.name)
    lives = [status.live for status in inventory.fleets if status.key == key]
    if not lives:
        return ""
    return str(drift_of(lives[0], inventory.instance_of_node.get(node.name)))


def _actions(made: Plan, name: NodeName) -> tuple[AnyAction, ...]:
    return tuple(a for a in made.actions if not isinstance(a, SetCapacity) and a.node == name)


def verdict_of(builder: PlanBuilder, made: Plan, node: Node) -> tuple[NodeVerdict, str, str]:
    """Return whether it stays, the code of the reason, and the reason in words."""
    verdict = NodeVerdicts(made).of(node.name)
    return _staying(builder, node) if verdict is None else verdict


class NodeVerdicts:
    """Reads from a plan what it says about many nodes.

    Args:
        made: The plan.
    """

    def __init__(self, made: Plan) -> None:
        self._endings: dict[NodeName, AnyAction] = {}
        for action in made.actions:
            if not isinstance(action, SetCapacity) and action.node is not None and _ends(action):
                self._endings.setdefault(action.node, action)
        self._made = made
        self._held = {each.node: each for each in reversed(made.held)}
        self._kept = {each.node: each for each in reversed(made.kept)}

    def of(self, name: NodeName) -> tuple[NodeVerdict, str, str] | None:
        """Return the verdict, its code and its words: the page and `explain node` begin with it.

        None if the plan says nothing about the node.
        """
        brought = name in self._made.fleet_of_node or name in self._made.orphan_nodes
        if brought and name in self._made.leaving:
            return "leaves", "instance-gone", "its instance is shutting down or gone"
        ending = self._endings.get(name)
        if ending is not None:
            return "leaves", ending.policy, ending.because
        held = self._held.get(name)
        if held is not None:
            return "held", held.code, f"it would go, but {held_in_words(held)}"
        kept = self._kept.get(name)
        if kept is not None:
            return "kept", kept.code, kept.detail
        if brought:
            return None
        return "foreign", "no-fleet", "it belongs to no fleet of the config, and is never changed"


def _ends(action: AnyAction) -> bool:
    """Return whether the action drains or ends its node. A soft taint does neither."""
    ends = isinstance(action, TerminateInstance | EvictPod | DeletePod | DeleteNode)
    return (ends and action.policy != "deschedule") or begins_drain(action)


def _staying(builder: PlanBuilder, node: Node) -> tuple[NodeVerdict, str, str]:
    """Return the verdict on a node about which the plan itself says nothing."""
    view = builder.view
    busy, taken = counted(view.pods_on.get(node.name, ())), _room_taken(builder, node)
    by_hand = _tainted_by_hand(node)
    if busy:
        names = [str(pod.key) for pod in sorted(busy, key=lambda pod: pod.key)]
        more = f" and {len(names) - SHOWN_PODS} more" if len(names) > SHOWN_PODS else ""
        shown = ", ".join(names[:SHOWN_PODS]) + more
        on_it = f"{counted_noun(len(busy), 'pod')} on it: {shown}"
        parts = [on_it, *([taken[2]] if taken is not None else []), *([by_hand] if by_hand else [])]
        return "used", "has-pods", "; ".join(parts) + _could_not_be_emptied(builder, node, busy)
    if taken is not None:
        return taken
    if by_hand:
        return "kept", "draining", by_hand
    if is_draining(node):
        ends = (a for a in builder.actions if ends_drain(a) and a.node == node.name)
        cancelled = next(ends, None)
        if cancelled is not None:
            return "kept", "draining", f"its drain is cancelled: {cancelled.because}"
        return "kept", "draining", "it is being emptied; the plan does nothing more to it now"
    return "kept", "not-a-candidate", "no policy removes it"


def _tainted_by_hand(node: Node) -> str:
    """Return how to remove a draining taint that is not ours; empty if there is none."""
    if not is_draining(node) or is_draining_by_us(node):
        return ""
    asked = f"kubectl taint node {node.name} {DRAINING_TAINT}-"
    return f"somebody else set its draining taint; remove it with `{asked}`"


def _room_taken(builder: PlanBuilder, node: Node) -> tuple[NodeVerdict, str, str] | None:
    """Return what its free room is reserved for, which keeps it; None if for nothing."""
    row = builder.view.row_of[node.name]
    sector = builder.kept_free.get(row)
    if sector is not None:
        of_sector = f" of sector {sector}" if sector else ""
        return "kept", "headroom", f"its free room is headroom{of_sector}"
    if row in builder.used_rows:
        return "used", "reserved", "its free room is reserved for pending pods"
    return None


def _could_not_be_emptied(builder: PlanBuilder, node: Node, pods: Sequence[Pod]) -> str:
    """Return in words what would prevent a drain of a used node; empty if nothing would."""
    view = builder.view
    key = view.inventory.fleet_of_node.get(node.name)
    if key is None:
        return ""
    status = view.statuses[key]
    judge = judge_of(terms_of(status.settings.scale_in), builder.budgets.coverage, view.at)
    blocker = first_blocker(view, node, status) or movable(judge, pods)[2]
    return (
        "" if blocker is None else f"; it could not be emptied ({blocker.code}): {blocker.detail}"
    )
