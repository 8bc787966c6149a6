"""One small function per kind of action: check the live object, then change it.

Every handler is idempotent: executed twice, or partly and then again, it has the same result.
"""

from collections.abc import Sequence

from reconciler.executor.rate_limited_ports import RateLimitedPorts
from reconciler.model.actions import (
    AnnotateNode,
    DeleteNode,
    DeletePod,
    EvictPod,
    SetCapacity,
    TaintNode,
    UntaintNode,
)
from reconciler.model.errors import Conflict, NotFound, Refused
from reconciler.model.outcome import OutcomeKind

SingleAction = SetCapacity | TaintNode | UntaintNode | EvictPod | DeletePod | DeleteNode
"""Every action except terminations and annotations, of which several are one call."""


def apply(action: SingleAction, ports: RateLimitedPorts) -> OutcomeKind:
    """Execute one action.

    Raises:
        PortError: It could not be executed, or it is unknown whether it was.
    """
    match action:
        case SetCapacity():
            return _set_capacity(action, ports)
        case TaintNode():
            return _done(changed=ports.cluster.taint_node(action.node, action.taint))
        case UntaintNode():
            return _untaint(action, ports)
        case EvictPod():
            return _done(changed=ports.cluster.evict_pod(action.pod, action.grace_seconds))
        case DeletePod():
            return _done(changed=ports.cluster.delete_pod(action.pod, action.grace_seconds))
        case DeleteNode():
            return _delete_node(action, ports)


def _done(*, changed: bool) -> OutcomeKind:
    return "applied" if changed else "already-done"


def _set_capacity(action: SetCapacity, ports: RateLimitedPorts) -> OutcomeKind:
    """Set the target, if it is still the one that the plan is based on; else raise Conflict."""
    cloud = ports.cloud(action.provider)
    live = cloud.fleet(action.region, action.id).target_capacity
    if live == action.to_capacity:
        return "already-done"
    if live != action.from_capacity:
        raise Conflict(
            action.fleet, f"its target is {live}, the plan was made from {action.from_capacity}"
        )
    cloud.set_target_capacity(action.region, action.id, action.to_capacity)
    return "applied"


def _untaint(action: UntaintNode, ports: RateLimitedPorts) -> OutcomeKind:
    try:
        return _done(changed=ports.cluster.untaint_node(action.node, action.key))
    except NotFound:
        return "already-done"


def annotate(actions: Sequence[AnnotateNode], ports: RateLimitedPorts) -> OutcomeKind:
    """Set annotations of one node in one call; the last value of a key counts.

    Raises:
        PortError: None of them was set, or it is unknown whether they were.
    """
    try:
        ports.cluster.annotate_node(
            actions[0].node, {action.key: action.value for action in actions}
        )
    except NotFound:
        return "already-done"
    return "applied"


def _delete_node(action: DeleteNode, ports: RateLimitedPorts) -> OutcomeKind:
    """Delete a Node only while its instance is gone: a live node would lose all its pods."""
    if action.instance is not None and action.region is not None:
        cloud = ports.cloud(action.provider)
        for instance in cloud.instances(action.region, [action.instance]):
            if not instance.gone:
                raise Refused(f"node {action.node}", f"its instance is {instance.state}")
    return _done(changed=ports.cluster.delete_node(action.node, action.uid))
