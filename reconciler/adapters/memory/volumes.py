"""Claims and their volumes, as kube-scheduler, the EBS CSI driver and EC2 treat them.

A claim exists from the first pod that names it on. If nothing else was stated about it, it is of
EKS's usual class: the node of its first pod determines the zone in which EBS makes its volume, and
from then on every pod with that claim runs in that zone.

It was written from kube-scheduler's documentation (VolumeBinding, VolumeZone, VolumeRestrictions,
NodeVolumeLimits), independently of the planner's filters.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from reconciler.model.cluster import Node, Pod
from reconciler.model.ebs_attach_limits import ebs_limit
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from reconciler.model.volumes import (
    EBS_DRIVER,
    ONE_NODE,
    ONE_POD,
    CsiNode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

PodName = tuple[str, str]
ClaimName = tuple[str, str]
"""Namespace and name of a claim."""
ZONE: Final = "topology.kubernetes.io/zone"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
DEFAULT_CLASS: Final = "gp3"
"""Of claims of which nothing was stated."""
_ATTACHED_ONCE: Final = frozenset({ONE_NODE, ONE_POD})
_FNV_OFFSET, _FNV_PRIME, _32_BITS = 0x811C9DC5, 0x01000193, 0xFFFFFFFF
StorageObject = PersistentVolumeClaim | PersistentVolume | StorageClass | CsiNode


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimShape:
    """What is stated on a claim; see `ClaimDemand`, whose fields these are."""

    namespace: str
    name: str
    zone: str = ""
    storage_class: str = ""
    driver: str = EBS_DRIVER
    """If its class is known already, the driver of the class counts."""
    immediate: bool = False
    """Whether its volume is made at once; if its class is known already, that of the class counts.
    """
    access_modes: tuple[str, ...] = (ONE_NODE,)
    of_pod: bool = False
    """Whether it is deleted with its pod, as that of a generic ephemeral volume."""


class MemoryVolumes:
    """The claims of a world, their volumes, and which node has them attached.

    Args:
        nodes: All nodes, as they are at any time.
    """

    def __init__(self, nodes: Mapping[NodeName, Node]) -> None:
        self._nodes = nodes
        self.claims: dict[ClaimName, PersistentVolumeClaim] = {}
        self.volumes: dict[ClaimName, PersistentVolume] = {}
        """By the claim that is bound to it."""
        self.zones: Sequence[str] = ()
        """Where volumes of classes that bind at once are made."""
        self._classes: dict[str, StorageClass] = {}
        self._stated: set[ClaimName] = set()
        """Claims of which something was stated: a later statement about them does not count."""
        self._going: set[ClaimName] = set()
        """Claims that are deleted when no pod names them any more."""
        self._named_by: dict[ClaimName, dict[PodName, None]] = {}
        self._held_by: dict[ClaimName, dict[PodName, NodeName]] = {}
        """The nodes of the pods that hold a claim, in the order in which they were bound."""
        self._at: dict[ClaimName, NodeName] = {}
        """Where a volume is attached that only one node may have: until no pod holds it there."""
        self._attached: dict[NodeName, dict[ClaimName, int]] = {}
        """EBS volumes on each node, with the number of their pods there."""
        self._limits: dict[str, int | None] = {}
        self._serial = 0

    # ---- claims ---------------------------------------------------------------------------

    def add(self, shape: ClaimShape) -> None:
        """Create a claim, or complete one that a pod has named and that has no volume yet."""
        key = (shape.namespace, shape.name)
        self._going.discard(key)
        if key in self._stated or key in self.volumes:
            return
        self._stated.add(key)
        storage_class = self._class_of(shape)
        self.claims[key] = PersistentVolumeClaim(
            namespace=shape.namespace,
            name=shape.name,
            storage_class=storage_class.name,
            access_modes=shape.access_modes,
            of_pod=shape.of_pod,
        )
        zone, by_ebs = shape.zone, storage_class.provisioner == EBS_DRIVER
        if by_ebs and not (zone or storage_class.wait_for_first_consumer):
            zone = _zone_by_name(shape.name, self.zones)
        if zone or not by_ebs:
            self._bind(key, zone)

    def remove(self, namespace: str, name: str) -> None:
        """Delete a claim as soon as no pod names it."""
        key = (namespace, name)
        if key in self.claims:
            self._going.add(key)
            self._delete_unnamed(key)

    def are_exclusive(self, namespace: str, claims: Sequence[str]) -> bool:
        """Return whether one of the claims is for a single node or pod."""
        keys = [(namespace, name) for name in claims]
        return any(self._is_attached_once(key) or self._is_of_one_pod(key) for key in keys)

    def own_of(self, pod: Pod) -> dict[str, str]:
        """Return the claims that are deleted with the pod, with their classes."""
        persistent_volume_claims = {
            name: self.claims.get((pod.key.namespace, name)) for name in pod.claims
        }
        return {
            name: claim.storage_class or ""
            for name, claim in persistent_volume_claims.items()
            if claim is not None and claim.of_pod
        }

    def with_own(self, made: Pod, pod: Pod, own: Mapping[str, str]) -> Pod:
        """Return a pod that was made in another's place, with claims of its own for `own`."""
        names = {name: f"{made.key.name}{name.removeprefix(pod.key.name)}" for name in own}
        for old, name in names.items():
            self.add(ClaimShape(namespace=made.key.namespace, name=name, storage_class=own[old],
                                of_pod=True))  # fmt: skip
        return replace(made, claims=tuple(names.get(claim, claim) for claim in made.claims))

    def _class_of(self, shape: ClaimShape) -> StorageClass:
        """Return the claim's class; the first claim of a class says what it is."""
        unnamed = f"{shape.driver}{'-immediate' if shape.immediate else ''}"
        if unnamed == EBS_DRIVER:
            unnamed = DEFAULT_CLASS
        name = shape.storage_class or unnamed
        return self._classes.setdefault(
            name,
            StorageClass(
                name=name,
                provisioner=shape.driver,
                wait_for_first_consumer=not shape.immediate,
                default=name == DEFAULT_CLASS,
            ),
        )

    def _of_class(self, key: ClaimName) -> StorageClass:
        return self._classes[self.claims[key].storage_class or ""]

    def _is_on_ebs(self, key: ClaimName) -> bool:
        return self._of_class(key).provisioner == EBS_DRIVER

    def _bind(self, key: ClaimName, zone: str) -> None:
        """Make a claim's volume, in a zone if it is of one."""
        self._serial += 1
        name, claim = f"pvc-{self._serial}", self.claims[key]
        here = Requirement(key=ZONE, operator="In", values=(zone,))
        self.claims[key] = replace(claim, volume_name=name)
        self.volumes[key] = PersistentVolume(
            name=name,
            node_affinity=NodeSelector(terms=(NodeSelectorTerm(expressions=(here,)),))
            if zone
            else None,
            csi_driver=self._of_class(key).provisioner,
            volume_handle=f"vol-{self._serial:017x}",
            storage_class=claim.storage_class or "",
            access_modes=claim.access_modes,
            claim=key,
        )

    def _delete_unnamed(self, key: ClaimName) -> None:
        """Delete a claim and its volume if no pod names it and it is to go."""
        claim = self.claims.get(key)
        if claim is None or key in self._named_by or not (claim.of_pod or key in self._going):
            return
        del self.claims[key]
        self.volumes.pop(key, None)
        self._stated.discard(key)
        self._going.discard(key)

    # ---- pods -----------------------------------------------------------------------------

    def changed(self, before: Pod | None, after: Pod | None) -> list[PodName]:
        """Note a pod that came, changed or went.

        Returns:
            Pods on other nodes that may have waited for its volumes and can attach them now.
        """
        pod = after or before
        assert pod is not None
        name, released = (pod.key.namespace, pod.key.name), []
        was, now = _node_of(before), _node_of(after)
        for key in _keys(pod):
            if after is not None:
                self._named_by.setdefault(key, {})[name] = None
                if key not in self.claims:
                    self.add(ClaimShape(namespace=key[0], name=key[1]))
                    self._stated.discard(key)  # only the pod has named it
            if now is not None and key not in self.volumes:
                node = self._nodes.get(now)
                self._bind(key, node.labels.get(ZONE, "") if node is not None else "")
            if was is not None and was != now:
                released += self._release(key, name, was)
            if now is not None and now != was:
                self._held_by.setdefault(key, {})[name] = now
                self._at.setdefault(key, now)
                if self._is_on_ebs(key):
                    there = self._attached.setdefault(now, {})
                    there[key] = there.get(key, 0) + 1
            if after is None:
                self._no_longer_named(key, name)
        return released

    def _release(self, key: ClaimName, name: PodName, node: NodeName) -> list[PodName]:
        held = self._held_by[key]
        del held[name]
        if self._is_on_ebs(key):
            there = self._attached[node]
            there[key] -= 1
            if not there[key]:
                del there[key]
            if not there:
                del self._attached[node]
        if not held:
            del self._held_by[key], self._at[key]
            return []
        if self._at[key] != node or node in held.values():
            return []
        self._at[key] = moved_to = next(iter(held.values()))
        return [each for each, where in held.items() if where == moved_to]

    def _no_longer_named(self, key: ClaimName, name: PodName) -> None:
        names = self._named_by[key]
        del names[name]
        if not names:
            del self._named_by[key]
            self._delete_unnamed(key)

    def allow(self, pod: Pod, node: Node) -> bool:
        """Return whether kube-scheduler may bind the pod to the node, as far as volumes go."""
        new = 0
        there = self._attached.get(node.name, {})
        for key in _keys(pod):
            if not self._reaches(key, node) or self._is_in_use(key, pod):
                return False
            new += self._is_on_ebs(key) and key not in there
        limit = self._limit_of(node)
        return not new or limit is None or len(there) + new <= limit

    def held_elsewhere(self, pod: Pod, node: NodeName) -> bool:
        """Return whether another node has a volume of the pod attached that only one may have.

        kube-scheduler does not look at that: the pod is bound, and its containers wait.
        """
        return any(
            self._at.get(key, node) != node for key in _keys(pod) if self._is_attached_once(key)
        )

    def _reaches(self, key: ClaimName, node: Node) -> bool:
        volume = self.volumes.get(key)
        if volume is None:
            return self._of_class(key).wait_for_first_consumer
        affinity = volume.node_affinity
        return affinity is None or affinity.matches(node.labels, node.name)

    def _is_in_use(self, key: ClaimName, pod: Pod) -> bool:
        """Return whether another pod has a claim that only one may have (ReadWriteOncePod)."""
        if not self._is_of_one_pod(key):
            return False
        return any(name != (pod.key.namespace, pod.key.name) for name in self._held_by.get(key, ()))

    def _is_of_one_pod(self, key: ClaimName) -> bool:
        claim = self.claims.get(key)
        return claim is not None and ONE_POD in claim.access_modes

    def _is_attached_once(self, key: ClaimName) -> bool:
        claim = self.claims.get(key)
        if claim is None or not self._is_on_ebs(key):
            return False
        return _ATTACHED_ONCE.issuperset(claim.access_modes)

    def _limit_of(self, node: Node) -> int | None:
        """Return how many EBS volumes a node attaches; None if that is not known of its type."""
        kind = node.labels.get(INSTANCE_TYPE, "")
        if kind not in self._limits:
            self._limits[kind] = ebs_limit(kind)
        return self._limits[kind]

    # ---- what the API server shows --------------------------------------------------------

    def listed(self) -> Iterator[StorageObject]:
        """Yield claims, volumes, classes, and what nodes attach; nothing before the first claim."""
        yield from chain(self.claims.values(), self.volumes.values(), self._classes.values())
        if not self._classes:
            return
        for node in self._nodes.values():
            limit = self._limit_of(node)
            if limit is not None:
                yield CsiNode(name=node.name, limits=FrozenMap({EBS_DRIVER: limit}))


def _keys(pod: Pod) -> list[ClaimName]:
    """Return the claims that a pod names, each once."""
    return [(pod.key.namespace, name) for name in dict.fromkeys(pod.claims)]


def _node_of(pod: Pod | None) -> NodeName | None:
    """Return the node on which a pod holds its volumes."""
    return None if pod is None or pod.finished else pod.node_name


def _zone_by_name(claim: str, zones: Sequence[str]) -> str:
    """Return the zone of a volume that is made at once, which follows from the claim's name.

    The claims of a StatefulSet's replicas are distributed evenly, and all claims of one replica are
    in one zone.

    Source: k8s.io/cloud-provider/volume/helpers/zones.go, ChooseZoneForVolume.
    """
    if not zones:
        return ""
    hashed, _, ordinal = claim.rpartition("-")
    index = 0
    if hashed and ordinal.isascii() and ordinal.isdigit():
        index = int(ordinal) & _32_BITS
        hashed = hashed.rpartition("-")[2]
    else:
        hashed = claim
    value = _FNV_OFFSET
    for byte in hashed.encode():
        value = (value * _FNV_PRIME & _32_BITS) ^ byte
    return zones[(value + index) % len(zones)]
