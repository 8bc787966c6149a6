"""Pods that were restarted again and again, and whether the node that they run on may be why."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from reconciler.model.cluster import Pod
from reconciler.model.ids import NodeName

CRASH_LOOP_RESTARTS: Final = 3
"""A pod with so many restarts on a new node halts the rolling update of its fleet."""
_WAITS: Final = "CrashLoopBackOff"
"""What a container's state says while the kubelet waits before the next restart."""


def restarted_pods(pods: Iterable[Pod]) -> Sequence[Pod]:
    """Return the pods on nodes that were restarted again and again."""
    return [
        pod
        for pod in pods
        if pod.node_name is not None and pod.restarts >= CRASH_LOOP_RESTARTS and not pod.finished
    ]


def crashing_pods(restarted: Sequence[Pod], old: Collection[NodeName]) -> Mapping[NodeName, Pod]:
    """Return one of the restarted pods by node, without those that crash on old nodes, too.

    A controller whose pods are in a crash loop on nodes of the old version says nothing about the
    new one. Restarts that a pod had some time ago do not count against it there.
    """
    everywhere = {
        _controller(pod) for pod in restarted if pod.node_name in old and _is_crashing(pod)
    } - {None}
    return {
        pod.node_name: pod
        for pod in restarted
        if pod.node_name is not None and _controller(pod) not in everywhere
    }


def _is_crashing(pod: Pod) -> bool:
    return not pod.ready and any(each.waiting == _WAITS for each in pod.containers)


def _controller(pod: Pod) -> tuple[str, str, str] | None:
    """Return what makes the pod; None for a pod that nothing makes."""
    if pod.owner is None:
        return None
    return pod.key.namespace, pod.owner.kind, pod.owner.name
