"""Decides which changes of an object need a new plan."""

from typing import Any

from reconciler.model.actions import INTERRUPTION
from reconciler.model.cluster import Node, Pod
from reconciler.records.kubernetes import ClusterObject, SavedState


def matters(before: ClusterObject | None, after: ClusterObject | None) -> bool:
    """Return whether a plan may differ after a change.

    In a large cluster, kubelets' heartbeats and pods' conditions change objects many times a second
    without an effect on plans.
    """
    if before is after:
        return False
    if isinstance(after if before is None else before, SavedState):
        return False  # its writer knows it already, and no other part reacts to it
    match before, after:
        case Pod() as old, Pod() as new:
            return _of_pod(old) != _of_pod(new)
        case Node() as old, Node() as new:
            return _of_node(old) != _of_node(new)
        case _:
            return before != after


def is_new_demand(before: ClusterObject | None, after: ClusterObject | None) -> bool:
    """Return whether a pod now waits for a node and did not before: the next plan is for it."""
    return _waits(after) and not _waits(before)


def asks(before: ClusterObject | None, after: ClusterObject | None) -> bool:
    """Return whether a new or changed object needs a plan soon; see ports.changes.

    That is a pod that waits, or a node whose end is announced. When a pod was bound or ended, or a
    node joined, no pod waits for the next plan.
    """
    notice = _notice(after)
    return is_new_demand(before, after) or (notice is not None and notice != _notice(before))


def _notice(value: ClusterObject | None) -> str | None:
    return value.annotations.get(INTERRUPTION) if isinstance(value, Node) else None


def _waits(value: ClusterObject | None) -> bool:
    if not isinstance(value, Pod) or value.node_name is not None:
        return False
    return not (value.finished or value.deleting or value.gated or value.left_to_scheduler)


def _of_pod(pod: Pod) -> tuple[Any, ...]:
    return (
        pod.key.uid,
        pod.node_name,
        pod.finished,
        pod.deleting,
        pod.gated,
        pod.left_to_scheduler,
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
