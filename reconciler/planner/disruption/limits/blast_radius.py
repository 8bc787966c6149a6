"""Blast radius: how many pods of one Deployment or StatefulSet are moved within a time.

Nothing is remembered for it. A pod that was placed within that time, that is being deleted or that
waits for a node counts as moved, whoever moved it: a rollout or a crash uses the limit up as well.
So does a pod on a node that we drain: its eviction may be refused, have its turn later, or be lost
with a restart, and it comes without asking this limit again.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.model.cluster import Pod
from reconciler.model.text import counted_noun, duration
from reconciler.model.top_controller import deployment_of
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.settling import bound_at
from reconciler.planner.nodes.drain_taints import is_draining_by_us
from reconciler.planner.settings import BlastRadius
from reconciler.planner.view import ClusterView

SETTLED_WITHIN = timedelta(minutes=5)
"""So long after its creation a pod is taken to have a node and be healthy soon, and so long after
its grace period one that is deleted is taken to go. Later it may stay as it is."""
LASTS_FROM_SECONDS = 3600.0
"""So long an idle node does not wait for pods that will need it: savings are reckoned an hour."""

_Controller = tuple[str, str, str]
"""Namespace, kind and name."""


class BlastRadiusLimits:
    """Says what may still be moved of each controller's pods.

    Args:
        view: The facts.
        limit: What the config allows; None for everything.
    """

    def __init__(self, view: ClusterView, limit: BlastRadius | None) -> None:
        self._limit = limit
        self._pods: Counter[_Controller] = Counter()
        self._moved: Counter[_Controller] = Counter()
        self._stuck: Counter[_Controller] = Counter()
        """Of those the pods that may count as moved for good: a rollout that fits nowhere."""
        if limit is None:
            return
        young = view.at - timedelta(seconds=limit.per_seconds)
        drained = {name for name, node in view.nodes.items() if is_draining_by_us(node)}
        for pod in view.snapshot.cluster.pods:
            controller = _controller_of(pod)
            if controller is None or pod.finished:
                continue
            self._pods[controller] += 1
            placed = bound_at(pod, view.at)
            recent = placed is not None and placed > young
            leaves = pod.node_name is None or pod.node_name in drained
            self._moved[controller] += recent or pod.deleting or leaves
            self._stuck[controller] += _is_stuck(pod, view.at)

    def blocker(self, pods: Iterable[Pod]) -> Blocker | None:
        """Return the first controller of which too many pods would be moved.

        None when all allow it.
        """
        if self._limit is None:
            return None
        for controller, count in sorted(_counted(pods).items()):
            total = self._pods[controller]
            allowed = self._limit.allowed(total)
            if self._moved[controller] + count > allowed:
                namespace, kind, name = controller
                return Blocker(
                    "blast-radius",
                    f"{counted_noun(count, 'pod')} of {kind} {namespace}/{name} would be moved and "
                    f"{self._moved[controller]} were within {self._period()}: "
                    f"blast_radius allows {allowed} of {total}",
                )
        return None

    def keeps_for_long(self, pods: Iterable[Pod]) -> bool:
        """Return whether waiting does not help: too many pods of one controller, or a long time.

        Pods that have long had no node, or do not end, count as moved for as long as they do so.
        """
        if self._limit is None:
            return False
        if self._limit.per_seconds > LASTS_FROM_SECONDS:
            return self.blocker(pods) is not None
        return any(
            self._stuck[each] + count > self._limit.allowed(self._pods[each])
            for each, count in _counted(pods).items()
        )

    def take(self, pods: Iterable[Pod]) -> None:
        """Count the pods as moved by this plan."""
        if self._limit is not None:
            self._moved.update(_counted(pods))

    def _period(self) -> str:
        assert self._limit is not None
        return duration(timedelta(seconds=self._limit.per_seconds))


def _controller_of(pod: Pod) -> _Controller | None:
    """Return the controller that makes such pods; None for a pod without one.

    A Deployment's ReplicaSets are one controller.
    """
    if pod.owner is None:
        return None
    deployment = deployment_of(pod.owner, pod.labels)
    if deployment is not None:
        return pod.key.namespace, "Deployment", deployment
    return pod.key.namespace, pod.owner.kind, pod.owner.name


def _is_stuck(pod: Pod, at: datetime) -> bool:
    """Return whether the pod waits for a node, or for its end, for long already."""
    since = pod.deletion_at if pod.deleting else pod.created_at
    waits = pod.deleting or pod.node_name is None
    return waits and since is not None and at - since > SETTLED_WITHIN


def _counted(pods: Iterable[Pod]) -> Counter[_Controller]:
    return Counter(filter(None, map(_controller_of, pods)))
