"""Blast radius: how many pods of one Deployment or StatefulSet may be moved within a time.

No state is kept for it. A pod that was placed within that time, that is being deleted or that is
pending counts as moved, whoever moved it: a rollout or a crash uses up the limit as well. So does a
pod on a node that we drain: its eviction may be refused, have its turn later, or be lost with a
restart, and it happens without asking this limit again.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.model.cluster import Pod
from reconciler.model.text import counted_noun, duration
from reconciler.model.top_controller import deployment_of
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.settling import bound_at
from reconciler.planner.disruption_settings import BlastRadius
from reconciler.planner.nodes.drain_taints import is_draining_by_us
from reconciler.planner.view import ClusterView

SETTLED_WITHIN = timedelta(minutes=5)
"""A pod younger than this is expected to get a node and become healthy soon, and a deleted one
to be gone this long after its grace period. After that the pod may stay as it is."""
LASTS_FROM_SECONDS = 3600.0
"""An idle node is not kept longer than this for pods that will need it: savings are per hour."""

_Controller = tuple[str, str, str]
"""Namespace, kind and name."""


class BlastRadiusLimits:
    """Decides how many pods of each controller may still be moved.

    Args:
        view: The facts.
        limit: The limit in the config; None for no limit.
    """

    def __init__(self, view: ClusterView, limit: BlastRadius | None) -> None:
        self._limit = limit
        self._pods: Counter[_Controller] = Counter()
        self._moved: Counter[_Controller] = Counter()
        self._stuck: Counter[_Controller] = Counter()
        """Those of the moved pods that may count as moved for good, such as those of a rollout
        that fits nowhere."""
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
        """Return a blocker for the first controller with too many moved pods; None if none has."""
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
        """Return whether the limit keeps these pods for long.

        It does if waiting does not help: one controller has more pods here than the limit, or the
        time of the limit is long. Pods that are pending or terminating for long count as moved as
        long as they are.
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
    """Return the controller that recreates the pod; None for a pod without one.

    The ReplicaSets of a Deployment count as one controller.
    """
    if pod.owner is None:
        return None
    deployment = deployment_of(pod.owner, pod.labels)
    if deployment is not None:
        return pod.key.namespace, "Deployment", deployment
    return pod.key.namespace, pod.owner.kind, pod.owner.name


def _is_stuck(pod: Pod, at: datetime) -> bool:
    """Return whether the pod has been pending or terminating for long."""
    since = pod.deletion_at if pod.deleting else pod.created_at
    waits = pod.deleting or pod.node_name is None
    return waits and since is not None and at - since > SETTLED_WITHIN


def _counted(pods: Iterable[Pod]) -> Counter[_Controller]:
    return Counter(filter(None, map(_controller_of, pods)))
