"""Drains one node and ends it, at the pace of another autoscaler."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reconciler.model.cluster import Node, Pod
from reconciler.simulation.peers.access import Access

DrainEnd = Literal["gone", "given-up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long the steps take."""

    first_wait_seconds: float
    """From the taint to the first eviction, or to the end of an empty node."""
    retry_seconds: float
    """Until a refused eviction is retried."""
    poll_seconds: float
    """Until it is checked again whether the pods are gone."""
    give_up_seconds: float | None = None
    """If evictions are refused for longer, the drain ends; None for no limit."""


class Drain:
    """A drain in progress; its caller has tainted the node.

    Args:
        access: The world.
        node: The node.
        pace: The pace.
        reason: What evictions are counted under.
        ended: Called at the end with the result.
        only_empty: Whether a pod that was bound meanwhile ends the drain.
        may_evict: The drain waits for pods for which this returns False.
    """

    def __init__(
        self,
        access: Access,
        node: Node,
        pace: Pace,
        reason: str,
        ended: Callable[[DrainEnd], None],
        *,
        only_empty: bool = False,
        may_evict: Callable[[Pod], bool] = lambda _: True,
    ) -> None:
        self._access, self._node, self._pace = access, node, pace
        self._reason, self._ended = reason, ended
        self._only_empty, self._may_evict = only_empty, may_evict
        self._refused_since: float | None = None
        access.clock.call_later(pace.first_wait_seconds, self._step)

    def _step(self) -> None:
        access, node = self._access, self._node
        if access.node(node.name) is None:
            self._ended("gone")
            return
        pods = access.pods_on(node.name)
        if not pods:
            if node.instance_id is not None:
                access.end(node.instance_id)
            self._ended("gone")
            return
        if self._only_empty:
            self._ended("given-up")
            return
        waiting = [pod for pod in pods if not pod.deleting and self._may_evict(pod)]
        refused = [pod for pod in waiting if not access.evict(pod, self._reason)]
        if not refused:
            self._refused_since = None
            access.clock.call_later(self._pace.poll_seconds, self._step)
            return
        since = self._refused_since = (
            access.now if self._refused_since is None else self._refused_since
        )
        limit = self._pace.give_up_seconds
        if limit is not None and access.now - since >= limit:
            self._ended("given-up")
            return
        access.clock.call_later(self._pace.retry_seconds, self._step)
