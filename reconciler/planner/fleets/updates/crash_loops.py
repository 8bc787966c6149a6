"""Pods that were restarted again and again, and whether their node may be the cause."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.cluster import Pod
from reconciler.model.containers import ContainerState
from reconciler.model.ids import NodeName

CRASH_LOOP_RESTARTS: Final = 3
"""A pod with this many restarts on a new node halts the rolling update of its fleet."""
_WAITS: Final = "CrashLoopBackOff"
"""The state of a container while the kubelet waits before the next restart."""
_BACKOFF_RESET: Final = timedelta(minutes=10)
"""A container that has run this long without a crash is no longer in a crash loop.

Source: Kubernetes documentation, "Pod Lifecycle", container restart policy: the kubelet resets the
backoff after 10 minutes.
"""


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
    """Return how often its containers, sidecars and failing init containers were restarted.

    Init containers that have succeeded do not count: many only wait for something by failing.
    """
    init = (
        container
        for container in pod.containers
        if container.kind == "init" and container.exit_code != 0
    )
    return pod.restarts + sum(container_state.restarts for container_state in init)


def crashing_pods(
    restarted: Sequence[Pod], old: Collection[NodeName], now: datetime
) -> Mapping[NodeName, Pod]:
    """Return by node one of the restarted pods, without those that crash on old nodes too.

    If pods of a controller are in a crash loop on nodes of the old version, they say nothing about
    the new one. Restarts of a pod some time ago do not count for that.

    Args:
        restarted: See `restarted_pods`.
        old: Nodes of the old version.
        now: The earliest time that the API server may have.
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
    """Return whether a container of the pod is in a crash loop at `now`.

    Args:
        pod: The pod.
        now: The earliest time that the API server may have.
    """
    return any(_is_in_crash_loop(container, now) for container in pod.containers)


def _is_in_crash_loop(container: ContainerState, now: datetime) -> bool:
    """Return whether it waits for its next restart, or has run only briefly since a crash."""
    if container.waiting == _WAITS:
        return True
    ended, again = container.ended_at, container.restarts >= CRASH_LOOP_RESTARTS
    return again and ended is not None and now - ended < _BACKOFF_RESET


def _controller(pod: Pod) -> tuple[str, str, str] | None:
    """Return the controller of the pod; None if it has none."""
    if pod.owner is None:
        return None
    return pod.key.namespace, pod.owner.kind, pod.owner.name
