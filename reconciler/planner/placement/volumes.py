"""What a pod's volumes ask of a node, looked up once in the snapshot.

Claims come down to three things: node selectors that must hold (bound volumes, allowed
topologies), attachments per CSI driver (a column of the resource matrix), or one code that
refuses it everywhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconciler.model.cluster import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from reconciler.model.frozen import FrozenMap
from reconciler.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from reconciler.planner.placement.kinds import REGION, ZONE

EBS_DRIVER = "ebs.csi.aws.com"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_PLACES = (
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    REGION,
    ZONE,
)
_NOWHERE = NodeSelectorTerm(
    expressions=tuple(Requirement(key=key, operator="DoesNotExist") for key in _PLACES)
)
"""A node that says nothing of where it is: VolumeZone lets every volume go there.

Source: kube-scheduler plugins/volumezone/volume_zone.go, Filter."""
_ZONE_SEPARATOR = "__"
"""In-tree volumes list several zones in one label value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeNeeds:
    """What a pod's volumes ask of a node."""

    selectors: tuple[NodeSelector, ...] = ()
    """All must match the node."""
    attachments: FrozenMap[str, int] = FrozenMap()  # noqa: RUF009 - an immutable value
    blocked: str = ""
    """An unplaceable code that holds on every node: `volume-binding` or `volume-in-use`."""
    detail: str = ""


NO_VOLUMES = VolumeNeeds()


class VolumeResolver:
    """Looks a pod's claims up in the snapshot."""

    def __init__(
        self,
        claims: Iterable[PersistentVolumeClaim],
        volumes: Iterable[PersistentVolume],
        classes: Iterable[StorageClass],
        pods: Iterable[Pod],
    ) -> None:
        self._claims = {(c.namespace, c.name): c for c in claims}
        self._volumes = {v.name: v for v in volumes}
        self._classes = {c.name: c for c in classes}
        self._default = next((c.name for c in classes if c.default), None)
        self._in_use = {
            (pod.key.namespace, claim): pod.key
            for pod in pods
            if pod.node_name and not pod.finished
            for claim in pod.claims
        }
        waiting = [
            pod
            for pod in pods
            if pod.claims and pod.node_name is None and not (pod.deleting or pod.gated)
        ]
        waiting.sort(key=lambda pod: pod.key, reverse=True)
        self._first_waiting = {(p.key.namespace, c): p.key for p in waiting for c in p.claims}
        self._known: dict[tuple[object, ...], VolumeNeeds] = {}

    def _waits_behind(self, pod: Pod) -> bool:
        """Whether another waiting pod comes first for a claim of this one."""
        first = (self._first_waiting.get((pod.key.namespace, claim)) for claim in pod.claims)
        return pod.node_name is None and any(key not in {None, pod.key} for key in first)

    def needs(self, pod: Pod) -> VolumeNeeds:
        """What the pod's volumes ask of its node."""
        key = (
            pod.key.namespace,
            pod.claims,
            pod.ebs_volume_ids,
            pod.node_name is None,
            self._waits_behind(pod),
        )
        if key not in self._known:
            self._known[key] = self._resolve(pod)
        return self._known[key]

    def _resolve(self, pod: Pod) -> VolumeNeeds:
        selectors: list[NodeSelector] = []
        attachments: dict[str, int] = {}
        if pod.ebs_volume_ids:
            attachments[EBS_DRIVER] = len(set(pod.ebs_volume_ids))
        asked = [self._claim(pod, name) for name in sorted(set(pod.claims))]
        asked += [
            self._static_volumes(claims, storage_class)
            for storage_class, claims in self._static_claims(pod).items()
            if len(claims) > 1
        ]
        for needs in asked:
            if needs.blocked and pod.node_name is None:
                return needs
            selectors.extend(s for s in needs.selectors if s not in selectors)
            for driver, count in needs.attachments.items():
                attachments[driver] = attachments.get(driver, 0) + count
        return VolumeNeeds(selectors=tuple(selectors), attachments=FrozenMap(attachments))

    def _claim(self, pod: Pod, name: str) -> VolumeNeeds:
        claim = self._claims.get((pod.key.namespace, name))
        if claim is None or claim.deleting:
            state = "is being deleted" if claim else "does not exist"
            return VolumeNeeds(blocked="volume-binding", detail=f"claim {name} {state}")
        place = (pod.key.namespace, name)
        user = self._in_use.get(place)
        if user is None and pod.node_name is None:
            user = self._first_waiting.get(place)
        if user not in {None, pod.key} and "ReadWriteOncePod" in claim.access_modes:
            detail = f"claim {name} is ReadWriteOncePod and {user} has it or comes first"
            return VolumeNeeds(blocked="volume-in-use", detail=detail)
        return self._bound(claim) if claim.volume_name else self._unbound(claim)

    def _bound(self, claim: PersistentVolumeClaim) -> VolumeNeeds:
        volume = self._volumes.get(claim.volume_name)
        if volume is None:
            detail = f"claim {claim.name} is bound to {claim.volume_name}, which does not exist"
            return VolumeNeeds(blocked="volume-binding", detail=detail)
        attachments = {volume.csi_driver: 1} if volume.csi_driver else {}
        return VolumeNeeds(selectors=_selectors_of(volume), attachments=FrozenMap(attachments))

    def _unbound(self, claim: PersistentVolumeClaim) -> VolumeNeeds:
        name = claim.storage_class if claim.storage_class is not None else self._default
        storage_class = self._classes.get(name or "")
        if storage_class is None or not storage_class.wait_for_first_consumer:
            detail = f"claim {claim.name} is not bound and nothing binds it when a pod is placed"
            return VolumeNeeds(blocked="volume-binding", detail=detail)
        if storage_class.provisioner == NO_PROVISIONER:
            return self._static_volumes([claim], storage_class.name)
        topologies = storage_class.allowed_topologies
        return VolumeNeeds(
            selectors=(NodeSelector(terms=topologies),) if topologies else (),
            attachments=FrozenMap({storage_class.provisioner: 1}),
        )

    def _static_claims(self, pod: Pod) -> dict[str, list[PersistentVolumeClaim]]:
        """The pod's unbound claims of each class whose volumes are made by hand."""
        found: dict[str, list[PersistentVolumeClaim]] = {}
        for name in sorted(set(pod.claims)):
            claim = self._claims.get((pod.key.namespace, name))
            if claim is None or claim.volume_name:
                continue
            wanted = claim.storage_class if claim.storage_class is not None else self._default
            storage_class = self._classes.get(wanted or "")
            if storage_class is not None and storage_class.provisioner == NO_PROVISIONER:
                found.setdefault(storage_class.name, []).append(claim)
        return found

    def _static_volumes(
        self, claims: Sequence[PersistentVolumeClaim], storage_class: str
    ) -> VolumeNeeds:
        """Local volumes made by hand: a free one of the class for each claim, on one node.

        Volumes count together when they have the same node affinity or none, as those of one
        node's disks do.
        """
        reserved = {(claim.namespace, claim.name) for claim in claims}
        free: dict[NodeSelector | None, list[PersistentVolume]] = {}
        for volume in self._volumes.values():
            if volume.storage_class == storage_class and (
                volume.claim is None or volume.claim in reserved
            ):
                free.setdefault(volume.node_affinity, []).append(volume)
        anywhere = free.pop(None, [])
        if _serve(anywhere, claims):
            return NO_VOLUMES
        terms = tuple(
            term
            for affinity, volumes in free.items()
            if affinity is not None and _serve([*anywhere, *volumes], claims)
            for term in affinity.terms
        )
        if not terms:
            names = ", ".join(claim.name for claim in claims)
            detail = f"claim {names}: no free volume of storage class {storage_class}"
            return VolumeNeeds(blocked="volume-binding", detail=detail)
        return VolumeNeeds(selectors=(NodeSelector(terms=terms),))


def _serve(volumes: Iterable[PersistentVolume], claims: Sequence[PersistentVolumeClaim]) -> bool:
    """Whether each claim finds a volume of its own, one reserved for it before all others.

    Source: kube-scheduler volumebinding findMatchingVolumes: claim after claim, no way back.
    """
    left = sorted(volumes, key=lambda volume: (volume.claim is None, volume.name))
    for claim in claims:
        own = (claim.namespace, claim.name)
        modes = set(claim.access_modes)
        found = next(
            (v for v in left if v.claim in {None, own} and modes <= set(v.access_modes)), None
        )
        if found is None:
            return False
        left.remove(found)
    return True


def _selectors_of(volume: PersistentVolume) -> tuple[NodeSelector, ...]:
    """A bound volume's node affinity, and its zone and region labels (VolumeZone)."""
    labelled = tuple(
        Requirement(key=key, operator="In", values=tuple(value.split(_ZONE_SEPARATOR)))
        for key, value in sorted(volume.labels.items())
        if key in _PLACES
    )
    affinity = (volume.node_affinity,) if volume.node_affinity is not None else ()
    if not labelled:
        return affinity
    return (*affinity, NodeSelector(terms=(NodeSelectorTerm(expressions=labelled), _NOWHERE)))
