"""One small function per kind of action: check the live object, then change it.

Every handler is idempotent: done twice, or half and then again, it comes to the same end.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.actions import (
    AnnotateNode,
    AnyAction,
    DeleteNode,
    DeletePod,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.errors import Conflict, NotFound, Refused
from reconciler.model.fleet import Provider
from reconciler.model.outcome import OutcomeKind
from reconciler.ports.cloud import Cloud
from reconciler.ports.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What actions act on."""

    cluster: Cluster
    clouds: Mapping[Provider, Cloud]


def carry_out(action: AnyAction, sides: Sides) -> OutcomeKind:  # noqa: PLR0911 - one per kind of action
    """Do one action.

    Raises:
        PortError: It could not be done, or nobody knows whether it was.
    """
    match action:
        case SetCapacity():
            return _set_capacity(action, sides)
        case TerminateInstance():
            return _terminate(action, sides)
        case TaintNode():
            return _done(changed=sides.cluster.taint_node(action.node, action.taint))
        case UntaintNode():
            return _untaint(action, sides)
        case AnnotateNode():
            return _annotate(action, sides)
        case EvictPod():
            return _done(changed=sides.cluster.evict_pod(action.pod, action.grace_seconds))
        case DeletePod():
            return _done(changed=sides.cluster.delete_pod(action.pod, 0))
        case DeleteNode():
            return _done(changed=sides.cluster.delete_node(action.node))


def _done(*, changed: bool) -> OutcomeKind:
    return "applied" if changed else "already-done"


def _set_capacity(action: SetCapacity, sides: Sides) -> OutcomeKind:
    """Only from the target that the plan was made from: another writer means planning again."""
    cloud = sides.clouds[action.provider]
    live = cloud.fleet(action.region, action.id).target_capacity
    if live == action.to_capacity:
        return "already-done"
    if live != action.from_capacity:
        raise Conflict(
            action.fleet, f"its target is {live}, the plan was made from {action.from_capacity}"
        )
    cloud.set_target_capacity(action.region, action.id, action.to_capacity)
    return "applied"


def _terminate(action: TerminateInstance, sides: Sides) -> OutcomeKind:
    """Lower the target first, so that the fleet does not replace what ends (behaviour, 5)."""
    cloud = sides.clouds[action.provider]
    live = cloud.instances(action.region, [action.instance])
    if not live or live[0].gone:
        return "already-done"
    if action.node is not None:
        remaining = sides.cluster.counted_pods_on(action.node)
        if remaining:
            raise Refused(action.node, f"{remaining[0]} runs there now")
    if action.decrement:
        fleet = cloud.fleet(action.region, action.fleet_id)
        cloud.set_target_capacity(action.region, action.fleet_id, max(0, fleet.target_capacity - 1))
    cloud.terminate_instances(action.region, [action.instance])
    return "applied"


def _untaint(action: UntaintNode, sides: Sides) -> OutcomeKind:
    try:
        return _done(changed=sides.cluster.untaint_node(action.node, action.key))
    except NotFound:
        return "already-done"


def _annotate(action: AnnotateNode, sides: Sides) -> OutcomeKind:
    try:
        sides.cluster.annotate_node(action.node, {action.key: action.value})
    except NotFound:
        return "already-done"
    return "applied"
