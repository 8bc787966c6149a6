"""Controllers of recorded demand: Deployments with their rollouts, StatefulSets, DaemonSets.

The world itself replaces pods that are evicted or lost; here is what changes the number of them.
"""

from collections import Counter
from dataclasses import dataclass
from math import ceil

from reconciler.adapters.memory import MemoryWorld
from reconciler.model.cluster import DaemonSet, Owner, Pod, PodSpec
from reconciler.model.demand import ControllerDemand
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.ids import PodKey

ROLLOUT_STEP_SECONDS = 5.0
SURGE = UNAVAILABLE = 0.25
"""maxSurge and maxUnavailable of a Deployment that does not set them."""
_POD_OWNER = {"Deployment": "ReplicaSet"}
"""What the pods of a controller call their owner."""


@dataclass(slots=True, kw_only=True)
class _Controller:
    """One controller as it is now."""

    owner: Owner
    """As its pods name it; the uid tells controllers apart."""
    namespace: str
    replicas: int = 0
    spec: PodSpec | None = None
    labels: Labels = NO_LABELS
    annotations: Labels = NO_LABELS
    made: int = 0
    rolling: bool = False


class Controllers:
    """The controllers of a world.

    Args:
        world: Where their pods are.
    """

    def __init__(self, world: MemoryWorld) -> None:
        self._world = world
        self._known: dict[tuple[str, str, str], _Controller] = {}

    def change(self, change: ControllerDemand) -> None:
        """A controller is created, changed or deleted."""
        kind, name = change.controller.kind, change.controller.name
        key = (change.namespace, kind, name)
        found = self._known.get(key)
        if found is None:
            owner = Owner(kind=_POD_OWNER.get(kind, kind), name=name, uid=f"{kind}/{name}")
            found = self._known[key] = _Controller(owner=owner, namespace=change.namespace)
        rolls = _apply(found, change)
        if kind == "DaemonSet":
            self._daemon_set(found, deleted=change.deleted)
        elif found.spec is not None:
            self._scale(found)
            if rolls:
                self._roll(found)
        if change.deleted:
            del self._known[key]

    def _daemon_set(self, controller: _Controller, *, deleted: bool) -> None:
        owner, objects = controller.owner, self._world.objects
        objects.remove_daemon_set(controller.namespace, owner.name)
        if not deleted and controller.spec is not None:
            objects.add_daemon_set(
                DaemonSet(namespace=controller.namespace, name=owner.name, uid=owner.uid,
                          spec=controller.spec)
            )  # fmt: skip

    def _pods(self, controller: _Controller) -> list[Pod]:
        """Its pods that are not on their way out."""
        owned = self._world.objects.owned(controller.namespace, controller.owner.uid)
        return [pod for pod in owned if not (pod.deleting or pod.finished)]

    def _scale(self, controller: _Controller) -> None:
        pods = self._pods(controller)
        for _ in range(controller.replicas - len(pods)):
            self._create(controller)
        for pod in _to_go(controller, pods)[: max(0, len(pods) - controller.replicas)]:
            self._world.remove_pod(pod.key)

    def _create(self, controller: _Controller) -> None:
        assert controller.spec is not None
        name = f"{controller.owner.name}-{controller.made}"
        if controller.owner.kind == "StatefulSet":
            taken = {pod.key.name for pod in self._pods(controller)}
            ordinals = (f"{controller.owner.name}-{n}" for n in range(controller.replicas + 1))
            name = next(each for each in ordinals if each not in taken)
        controller.made += 1
        self._world.add_pod(
            Pod(
                key=PodKey(namespace=controller.namespace, name=name),
                spec=controller.spec,
                owner=controller.owner,
                labels=controller.labels,
                annotations=controller.annotations,
            )
        )

    def _roll(self, controller: _Controller) -> None:
        """Begin a rollout; one that runs already goes on with the new template."""
        if not controller.rolling:
            controller.rolling = True
            self._step(controller)

    def _step(self, controller: _Controller) -> None:
        """As the Deployment controller does: new pods up to the surge, old ones as these are ready.

        A StatefulSet replaces one pod after another, the highest ordinal first.
        """
        pods = self._pods(controller)
        old = [pod for pod in pods if pod.spec is not controller.spec]
        if not old or not controller.replicas:
            controller.rolling = False
            return
        ready = sum(pod.ready for pod in pods)
        if controller.owner.kind == "StatefulSet":
            if ready >= controller.replicas:
                self._world.remove_pod(max(old, key=_ordinal).key)
                self._create(controller)
        else:
            wanted = controller.replicas + ceil(SURGE * controller.replicas)
            missing = min(wanted - len(pods), controller.replicas - (len(pods) - len(old)))
            for _ in range(missing):
                self._create(controller)
            spare = ready - (controller.replicas - int(UNAVAILABLE * controller.replicas))
            for pod in sorted(old, key=lambda each: (each.ready, each.key.name)):
                if not pod.ready:
                    self._world.remove_pod(pod.key)
                elif spare > 0:
                    self._world.remove_pod(pod.key)
                    spare -= 1
        self._world.clock.call_later(ROLLOUT_STEP_SECONDS, lambda: self._step(controller))


def _apply(controller: _Controller, change: ControllerDemand) -> bool:
    """Take over what a line says; return whether the pods that run are out of date by it."""
    rolls = change.spec is not None and controller.spec not in {None, change.spec}
    if change.spec is not None and change.spec != controller.spec:
        controller.spec = change.spec
    if change.replicas is not None:
        controller.replicas = change.replicas
    controller.labels = change.labels or controller.labels
    controller.annotations = change.annotations or controller.annotations
    if change.deleted:
        controller.replicas = 0
    return rolls and not change.deleted


def _to_go(controller: _Controller, pods: list[Pod]) -> list[Pod]:
    """The pods in the order in which a scale-down takes them.

    Those that wait first, then those that share a node; of a StatefulSet the highest ordinal.
    """
    if controller.owner.kind == "StatefulSet":
        return sorted(pods, key=_ordinal, reverse=True)
    sharing = Counter(pod.node_name for pod in pods)
    return sorted(pods, key=lambda p: (p.node_name is not None, -sharing[p.node_name], p.key.name))


def _ordinal(pod: Pod) -> int:
    return int(pod.key.name.rpartition("-")[2])
