"""One small function per kind of action: check the live object, then change it.

Every handler is idempotent: done twice, or half and then again, it comes to the same end.
"""

from collections.abc import Sequence

from reconciler.executor.ports import PacedPorts
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
"""Everything but terminations and annotations, of which several are one call."""


def apply(action: SingleAction, ports: PacedPorts) -> OutcomeKind:
    """Do one action.

    Raises:
        PortError: It could not be done, or it is unknown whether it was.
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


def _set_capacity(action: SetCapacity, ports: PacedPorts) -> OutcomeKind:
    """Only from the target that the plan was made from: another writer means planning again."""
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


def _untaint(action: UntaintNode, ports: PacedPorts) -> OutcomeKind:
    try:
        return _done(changed=ports.cluster.untaint_node(action.node, action.key))
    except NotFound:
        return "already-done"


def annotate(actions: Sequence[AnnotateNode], ports: PacedPorts) -> OutcomeKind:
    """Set annotations of one node in one call; of the same key the last one counts.

    Raises:
        PortError: None of them was set, or it is unknown whether they were.
    """
    try:
        ports.cluster.annotate_node(actions[0].node, {each.key: each.value for each in actions})
    except NotFound:
        return "already-done"
    return "applied"


def _delete_node(action: DeleteNode, ports: PacedPorts) -> OutcomeKind:
    """Only while its instance is gone: without its object a node that lives loses all its pods."""
    if action.instance is not None and action.region is not None:
        cloud = ports.cloud(action.provider)
        for found in cloud.instances(action.region, [action.instance]):
            if not found.gone:
                raise Refused(f"node {action.node}", f"its instance is {found.state}")
    return _done(changed=ports.cluster.delete_node(action.node, action.uid))
