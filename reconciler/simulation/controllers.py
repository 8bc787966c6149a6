"""Controllers of recorded demand: Deployments with rollouts, StatefulSets, DaemonSets.

The world itself replaces pods that are evicted or lost; these controllers change their number.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import count
from math import ceil

from reconciler.adapters.memory import MemoryWorld
from reconciler.model.cluster import DaemonSet, Owner, Pod, PodSpec
from reconciler.model.demand import NO_VOLUMES, ClaimTemplate, ControllerDemand, PodVolumes
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.ids import PodKey
from reconciler.simulation.volumes import claims_of

ROLLOUT_STEP_SECONDS = 5.0
SURGE = UNAVAILABLE = 0.25
"""maxSurge and maxUnavailable of a Deployment that does not set them."""
_POD_OWNER = {"Deployment": "ReplicaSet"}
"""The owner that the pods of a controller name."""


@dataclass(slots=True, kw_only=True)
class _Controller:
    """One controller in its current state."""

    owner: Owner
    """As its pods name it; the uid identifies the controller."""
    namespace: str
    replicas: int = 0
    spec: PodSpec | None = None
    volumes: PodVolumes = NO_VOLUMES
    claim_templates: tuple[ClaimTemplate, ...] = ()
    labels: Labels = NO_LABELS
    annotations: Labels = NO_LABELS
    in_order: bool = True
    """Of a StatefulSet: whether each replica is created when those before it are ready."""
    made: int = 0
    rolling: bool = False
    filling: bool = False
    """Whether the next replica of a StatefulSet waits for those before it."""

    def is_old(self, pod: Pod) -> bool:
        """Return whether a pod is of another template: its spec, labels and annotations.

        Specs are compared as objects: there are many pods, and their specs are large.
        """
        return not (
            pod.spec is self.spec
            and (pod.labels is self.labels or pod.labels == self.labels)
            and (pod.annotations is self.annotations or pod.annotations == self.annotations)
        )


class Controllers:
    """The controllers of a world.

    Args:
        world: The world with their pods.
    """

    def __init__(self, world: MemoryWorld) -> None:
        self._world = world
        self._known: dict[tuple[str, str, str], _Controller] = {}
        self.without_spec: set[tuple[str, str, str]] = set()
        """Those that would have pods if the demand said what these request."""

    def change(self, change: ControllerDemand) -> None:
        """Apply a line: a controller is created, changed or deleted."""
        kind, name = change.controller.kind, change.controller.name
        key = (change.namespace, kind, name)
        controller = self._known.get(key)
        if controller is None:
            owner = Owner(kind=_POD_OWNER.get(kind, kind), name=name, uid=f"{kind}/{name}")
            controller = self._known[key] = _Controller(owner=owner, namespace=change.namespace)
        rolls = _apply(controller, change)
        if controller.spec is not None:
            self.without_spec.discard(key)
        elif not change.deleted and (controller.replicas or kind == "DaemonSet"):
            self.without_spec.add(key)
        if kind == "DaemonSet":
            self._daemon_set(controller, deleted=change.deleted)
        elif controller.spec is not None:
            if controller.rolling:
                self._advance(controller)
            else:
                self._scale(controller)
            if rolls and kind != "ReplicaSet":  # whose pods stay as they were made
                self._roll(controller)
        if change.deleted:
            controller.rolling = False
            del self._known[key]

    def _daemon_set(self, controller: _Controller, *, deleted: bool) -> None:
        owner, objects = controller.owner, self._world.objects
        if deleted:
            objects.remove_daemon_set(controller.namespace, owner.name)
        elif controller.spec is not None:
            objects.add_daemon_set(
                DaemonSet(namespace=controller.namespace, name=owner.name, uid=owner.uid,
                          spec=controller.spec)
            )  # fmt: skip

    def _pods(self, controller: _Controller) -> list[Pod]:
        """Return its pods; terminating ones only of a StatefulSet, which waits for their end."""
        owned = self._world.objects.owned(controller.namespace, controller.owner.uid)
        waits = controller.owner.kind == "StatefulSet"
        return [pod for pod in owned if not pod.finished and (waits or not pod.deleting)]

    def _scale(self, controller: _Controller) -> None:
        if controller.owner.kind == "StatefulSet" and controller.in_order:
            self._fill(controller)
        pods = self._pods(controller)
        for _ in range(0 if controller.filling else controller.replicas - len(pods)):
            self._create(controller)
        going = _to_go(controller, pods)[: max(0, len(pods) - controller.replicas)]
        self._world.remove_pods(pod.key for pod in going)

    def _fill(self, controller: _Controller) -> None:
        """Create the next replicas of a StatefulSet, each when those before it are ready.

        Source: OrderedReady in kubernetes/pkg/controller/statefulset/stateful_set_control.go, 1.34.
        """
        pods = self._pods(controller)
        while len(pods) < controller.replicas and all(p.ready and not p.deleting for p in pods):
            self._create(controller)
            pods = self._pods(controller)
        if len(pods) < controller.replicas and not controller.filling:
            self._world.clock.call_later(ROLLOUT_STEP_SECONDS, lambda: self._fill_on(controller))
        controller.filling = len(pods) < controller.replicas

    def _fill_on(self, controller: _Controller) -> None:
        controller.filling = False
        self._fill(controller)

    def _create(self, controller: _Controller) -> None:
        assert controller.spec is not None
        namespace, taken = controller.namespace, self._world.objects.pods
        first = 0 if controller.owner.kind == "StatefulSet" else controller.made
        names = (f"{controller.owner.name}-{n}" for n in count(first))
        name = next(each for each in names if (namespace, each) not in taken)
        controller.made += 1
        self._world.add_pod(
            Pod(
                key=PodKey(namespace=namespace, name=name),
                spec=controller.spec,
                owner=controller.owner,
                labels=controller.labels,
                annotations=controller.annotations,
                claims=claims_of(
                    self._world, namespace, name, controller.volumes, controller.claim_templates
                ),
            )
        )

    def _roll(self, controller: _Controller) -> None:
        """Start a rollout; a current one continues with the new template."""
        if not controller.rolling:
            controller.rolling = True
            self._step(controller)

    def _step(self, controller: _Controller) -> None:
        """Continue a rollout until no pod of another template is left."""
        if not controller.rolling:
            return
        self._advance(controller)
        if any(controller.is_old(pod) for pod in self._pods(controller)):
            self._world.clock.call_later(ROLLOUT_STEP_SECONDS, lambda: self._step(controller))
        else:
            self._scale(controller)
            controller.rolling = False

    def _advance(self, controller: _Controller) -> None:
        """Take one step of a rollout; it also scales."""
        if not controller.replicas:
            self._scale(controller)
        elif controller.owner.kind == "StatefulSet":
            self._scale(controller)
            self._replace_one(controller)
        elif self._excludes_others(controller):
            pods = self._pods(controller)
            self._world.remove_pods(pod.key for pod in pods if controller.is_old(pod))
            self._scale(controller)
        else:
            self._add_new(controller)
            self._remove_old(controller)

    def _excludes_others(self, controller: _Controller) -> bool:
        """Return whether pods of two templates cannot run together, as with strategy Recreate.

        A volume for a single node or pod would keep the new pods from becoming ready, and a
        Deployment keeps old ones until they are: no rollout would ever end.
        """
        claims = controller.volumes.claims
        volumes = self._world.objects.volumes
        return bool(claims) and volumes.are_exclusive(controller.namespace, claims)

    def _replace_one(self, controller: _Controller) -> None:
        """Replace pods as a StatefulSet does: one after another, the highest ordinal first."""
        pods = [pod for pod in self._pods(controller) if not pod.deleting]
        old = [pod for pod in pods if controller.is_old(pod)]
        if old and sum(pod.ready for pod in pods) >= controller.replicas:
            self._world.remove_pod(max(old, key=_ordinal).key)
            self._create(controller)

    def _add_new(self, controller: _Controller) -> None:
        """Add pods of the new template up to the surge and the replicas, as a Deployment does.

        Source: NewRSNewReplicas of kubernetes/pkg/controller/deployment/util, 1.34.
        """
        pods, replicas = self._pods(controller), controller.replicas
        new = [pod for pod in pods if not controller.is_old(pod)]
        room = replicas + ceil(SURGE * replicas) - len(pods)
        for _ in range(min(room, replicas - len(new))):
            self._create(controller)
        for pod in _to_go(controller, new)[: max(0, len(new) - replicas)]:
            self._world.remove_pod(pod.key)

    def _remove_old(self, controller: _Controller) -> None:
        """Remove old pods as a Deployment does: unready ones first, then ready ones if possible.

        Source: reconcileOldReplicaSets of kubernetes/pkg/controller/deployment/rolling.go, 1.34.
        """
        pods, replicas = self._pods(controller), controller.replicas
        old = [pod for pod in pods if controller.is_old(pod)]
        least = replicas - int(UNAVAILABLE * replicas)
        coming = sum(not pod.ready for pod in pods) - sum(not pod.ready for pod in old)
        spare = len(pods) - least - coming
        if spare <= 0:
            return
        ready = sum(pod.ready for pod in pods)
        going = [pod for pod in old if not pod.ready][:spare]
        going += [pod for pod in old if pod.ready][: max(0, ready - least)]
        self._world.remove_pods(pod.key for pod in going)


def _apply(controller: _Controller, change: ControllerDemand) -> bool:
    """Apply the content of a line; return whether it makes running pods outdated."""
    before = _template(controller)
    if change.spec is not None:
        if change.volumes != controller.volumes:  # a template of its own, even with an equal spec
            controller.spec, controller.volumes = replace(change.spec), change.volumes
        elif change.spec != controller.spec:
            controller.spec = change.spec
    if change.replicas is not None:
        controller.replicas = change.replicas
    if change.pod_management_policy is not None:
        controller.in_order = change.pod_management_policy == "OrderedReady"
    controller.claim_templates = change.claim_templates or controller.claim_templates
    controller.labels = change.labels or controller.labels
    controller.annotations = change.annotations or controller.annotations
    rolls = before[0] is not None and before != _template(controller)
    if change.deleted:
        controller.replicas = 0
    return rolls and not change.deleted


def _template(controller: _Controller) -> tuple[PodSpec | None, PodVolumes, Labels, Labels]:
    return controller.spec, controller.volumes, controller.labels, controller.annotations


def _to_go(controller: _Controller, pods: list[Pod]) -> list[Pod]:
    """Return the pods in the order in which a scale-down deletes them.

    Pending ones first, then those that share a node; of a StatefulSet the highest ordinal.
    """
    if controller.owner.kind == "StatefulSet":
        return sorted(pods, key=_ordinal, reverse=True)
    sharing = Counter(pod.node_name for pod in pods)
    return sorted(pods, key=lambda p: (p.node_name is not None, -sharing[p.node_name], p.key.name))


def _ordinal(pod: Pod) -> int:
    """Return the number at the end of its name; -1 for a pod with a name from a line of its own."""
    number = pod.key.name.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() else -1
