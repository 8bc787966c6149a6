"""Pods that were restarted again and again, and whether the node that they run on may be why."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.cluster import Pod
from reconciler.model.containers import ContainerState
from reconciler.model.ids import NodeName

CRASH_LOOP_RESTARTS: Final = 3
"""A pod with so many restarts on a new node halts the rolling update of its fleet."""
_WAITS: Final = "CrashLoopBackOff"
"""What a container's state says while the kubelet waits before the next restart."""
_BACKOFF_RESET: Final = timedelta(minutes=10)
"""A container that has run for so long without a crash is in no crash loop any more.
Source: Kubernetes documentation, "Pod Lifecycle", container restart policy: the kubelet resets the
backoff after 10 minutes."""


def restarted_pods(pods: Iterable[Pod]) -> Sequence[Pod]:
    """Return the pods on nodes that were restarted again and again."""
    return [
        pod
        for pod in pods
        if (pod.restarts or pod.containers)
        and pod.node_name is not None
        and not pod.finished
        and restarts_of(pod) >= CRASH_LOOP_RESTARTS
    ]


def restarts_of(pod: Pod) -> int:
    """Return how often its containers were restarted, with sidecars and init containers that fail.

    Not those init containers that have succeeded: many only wait for something by failing.
    """
    init = (each for each in pod.containers if each.kind == "init" and each.exit_code != 0)
    return pod.restarts + sum(each.restarts for each in init)


def crashing_pods(
    restarted: Sequence[Pod], old: Collection[NodeName], now: datetime
) -> Mapping[NodeName, Pod]:
    """Return one of the restarted pods by node, without those that crash on old nodes, too.

    A controller whose pods are in a crash loop on nodes of the old version says nothing about the
    new one. Restarts that a pod had some time ago do not count against it there.

    Args:
        restarted: See `restarted_pods`.
        old: Nodes of the old version.
        now: The time that the API server has at least.
    """
    everywhere = {
        _controller(pod) for pod in restarted if pod.node_name in old and is_crashing(pod, now)
    } - {None}
    return {
        pod.node_name: pod
        for pod in restarted
        if pod.node_name is not None and _controller(pod) not in everywhere
    }


def is_crashing(pod: Pod, now: datetime) -> bool:
    """Return whether a container of the pod is in a crash loop at a time.

    Args:
        pod: The pod.
        now: The time that the API server has at least.
    """
    return any(_is_in_crash_loop(each, now) for each in pod.containers)


def _is_in_crash_loop(container: ContainerState, now: datetime) -> bool:
    """Whether it waits for its next restart, or runs for a short time only between two crashes."""
    if container.waiting == _WAITS:
        return True
    ended, again = container.ended_at, container.restarts >= CRASH_LOOP_RESTARTS
    return again and ended is not None and now - ended < _BACKOFF_RESET


def _controller(pod: Pod) -> tuple[str, str, str] | None:
    """Return what makes the pod; None for a pod that nothing makes."""
    if pod.owner is None:
        return None
    return pod.key.namespace, pod.owner.kind, pod.owner.name
