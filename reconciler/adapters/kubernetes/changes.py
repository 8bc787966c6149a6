"""Which changes of an object are worth planning again for."""

from typing import Any

from reconciler.model.actions import INTERRUPTION
from reconciler.model.cluster import Node, Pod
from reconciler.records.kubernetes import ClusterObject, SavedState


def matters(before: ClusterObject | None, after: ClusterObject | None) -> bool:
    """Whether a plan may come out differently.

    A kubelet's heartbeat and a pod's way through its conditions change objects many times a
    second in a large cluster, and no plan.
    """
    if before is after:
        return False
    if isinstance(after if before is None else before, SavedState):
        return False  # its writer knows it already, and no other part acts on it
    match before, after:
        case Pod() as old, Pod() as new:
            return _of_pod(old) != _of_pod(new)
        case Node() as old, Node() as new:
            return _of_node(old) != _of_node(new)
        case _:
            return before != after


def is_new_demand(before: ClusterObject | None, after: ClusterObject | None) -> bool:
    """Whether a pod waits for a node now and did not before: the next plan is for it."""
    return _waits(after) and not _waits(before)


def asks(before: ClusterObject | None, after: ClusterObject | None) -> bool:
    """Whether an object that came or changed asks for something soon; see ports.changes.

    A pod that waits, and a node whose end is announced. That a pod was bound or ended, or that a
    node came, frees or offers room: no pod waits for the next plan.
    """
    notice = _notice(after)
    return is_new_demand(before, after) or (notice is not None and notice != _notice(before))


def _notice(value: ClusterObject | None) -> str | None:
    return value.annotations.get(INTERRUPTION) if isinstance(value, Node) else None


def _waits(value: ClusterObject | None) -> bool:
    if not isinstance(value, Pod) or value.node_name is not None:
        return False
    return not (value.finished or value.deleting or value.gated)


def _of_pod(pod: Pod) -> tuple[Any, ...]:
    return (
        pod.key.uid,
        pod.node_name,
        pod.finished,
        pod.deleting,
        pod.gated,
        pod.nominated_node_name,
        pod.spec,
        pod.labels,
        pod.annotations,
        pod.claims,
        pod.unreadable,
    )


def _of_node(node: Node) -> tuple[Any, ...]:
    return (
        node.uid,
        node.instance_id,
        node.ready,
        node.unschedulable,
        node.deleting,
        node.taints,
        node.labels,
        node.annotations,
        node.allocatable,
        node.unreadable,
    )
