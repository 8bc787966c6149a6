"""What a pod's volumes require of a node, looked up once in the snapshot.

Claims amount to three things: node selectors that must hold (bound volumes, allowed topologies),
attachments per CSI driver (a column of the resource matrix; a node attaches a volume that several
pods use once), or one code that refuses the claim everywhere. If several pods wait for one volume
that is yet to be made, its zone will be that of the first.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from reconciler.model.cluster import Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.selectors import (
    NAME,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
)
from reconciler.model.volumes import (
    EBS_DRIVER,
    NO_PROVISIONER,
    ONE_POD,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from reconciler.planner.placement.kinds import ZONE_KEYS
from reconciler.planner.placement.one_pod_claims import MayRun, first_of_each
from reconciler.planner.placement.static_volumes import serve
from reconciler.planner.placement.volume_needs import NO_VOLUMES, SharedVolume, VolumeNeeds
from reconciler.planner.placement.volume_places import selectors_of

_NOT_SAVED = "save the {} with the other objects, or create one if there is none"
"""A cluster without any is more likely planned from files that lack them."""


def _by_class(volumes: Iterable[PersistentVolume]) -> dict[str, list[PersistentVolume]]:
    """Return the volumes that claims may be bound to, by storage class."""
    found: dict[str, list[PersistentVolume]] = {}
    for volume in volumes:
        if not volume.deleting:
            found.setdefault(volume.storage_class, []).append(volume)
    return found


def _claims_in_use(pods: Iterable[Pod]) -> dict[tuple[str, str], PodKey]:
    """Return a pod on a node that uses each claim, by the claim's namespace and name."""
    return {
        (pod.key.namespace, claim): pod.key
        for pod in pods
        if pod.node_name and not pod.finished
        for claim in pod.claims
    }


def _waits_for_a_node(pod: Pod) -> bool:
    """Return whether the pod is pending and to be planned for."""
    return pod.node_name is None and not (pod.deleting or pod.gated or pod.left_to_scheduler)


class VolumeResolver:
    """Looks a pod's claims up in the snapshot."""

    def __init__(
        self,
        claims: Iterable[PersistentVolumeClaim],
        volumes: Iterable[PersistentVolume],
        classes: Iterable[StorageClass],
        pods: Iterable[Pod],
        nodes: Collection[NodeName] = (),
        may_run: MayRun = lambda _: True,
    ) -> None:
        """Index the claims and volumes.

        `pods` are those that run or are pending, `nodes` the existing ones; `may_run` returns
        whether a pod with such a spec could run anywhere.
        """
        self._nodes = nodes
        self._claims = {(c.namespace, c.name): c for c in claims}
        self._volumes = {v.name: v for v in volumes}
        self._by_class = _by_class(self._volumes.values())
        self._classes = {c.name: c for c in classes}
        self._default = next((c.name for c in classes if c.default), None)
        self._in_use = _claims_in_use(pods)
        waiting = [pod for pod in pods if pod.claims and _waits_for_a_node(pod)]
        self._first_waiting = first_of_each(self._claims, waiting, may_run)
        self._users = Counter(
            volume
            for pod in pods
            if pod.claims or pod.ebs_volume_ids
            for volume in set(self._attached(pod))
        )
        self._zone_claims = self._shared_in_a_zone(pods)
        self._known: dict[tuple[object, ...], VolumeNeeds] = {}

    def _attached(self, pod: Pod) -> Iterator[SharedVolume]:
        """Return everything that a node attaches for the pod, whether or not others use it too.

        Source: kube-scheduler nodevolumelimits: an unbound claim counts by its name.
        """
        for handle in pod.ebs_volume_ids:
            yield SharedVolume(driver=EBS_DRIVER, handle=handle)
        for name in pod.claims:
            claim = self._claims.get((pod.key.namespace, name))
            if claim is None:
                continue
            volume = self._volumes.get(claim.volume_name)
            if volume is not None and volume.csi_driver:
                handle = volume.volume_handle or volume.name
                yield SharedVolume(driver=volume.csi_driver, handle=handle)
            elif not claim.volume_name and (driver := self._provisioner(claim)):
                yield SharedVolume(driver=driver, handle=f"{claim.namespace}/{claim.name}")

    def _shared_in_a_zone(self, pods: Iterable[Pod]) -> dict[tuple[str, str], str]:
        """Return the claims whose users must all be in one zone, with the name that they share.

        A pod with two such claims ties the users of both to each other.
        """
        joined: dict[tuple[str, str], tuple[str, str]] = {}
        users: Counter[tuple[str, str]] = Counter()

        def first_of(place: tuple[str, str]) -> tuple[str, str]:
            while joined[place] != place:
                joined[place] = place = joined[joined[place]]
            return place

        for pod in pods:
            places = [(pod.key.namespace, name) for name in dict.fromkeys(pod.claims)]
            places = [place for place in places if self._gets_a_zone(self._claims.get(place))]
            users.update(places[:1])
            for place in places:
                joined.setdefault(place, place)
                one, other = sorted((first_of(places[0]), first_of(place)))
                joined[other] = one
        total: Counter[tuple[str, str]] = Counter()
        for place, count in users.items():
            total[first_of(place)] += count
        return {p: "/".join(first_of(p)) for p in joined if total[first_of(p)] > 1}

    def _gets_a_zone(self, claim: PersistentVolumeClaim | None) -> bool:
        """Return whether the claim's first pod determines the zone of its volume.

        EBS makes all volumes in one zone. Other drivers declare it by zones that their class
        allows; a file system that every zone reaches (EFS, FSx) has none.
        """
        if claim is None or claim.volume_name or not self._provisioner(claim):
            return False
        storage_class = self._class_of(claim)
        if storage_class is None or not storage_class.wait_for_first_consumer:
            return False
        lines = (line for term in storage_class.allowed_topologies for line in term.expressions)
        return storage_class.provisioner == EBS_DRIVER or any(
            line.key in ZONE_KEYS for line in lines
        )

    def _provisioner(self, claim: PersistentVolumeClaim) -> str:
        """Return the driver that will make the claim's volume; empty for volumes made by hand."""
        storage_class = self._class_of(claim)
        known = storage_class is not None and storage_class.provisioner != NO_PROVISIONER
        return storage_class.provisioner if storage_class is not None and known else ""

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        name = claim.storage_class if claim.storage_class is not None else self._default
        return self._classes.get(name or "")

    def _waits_behind(self, pod: Pod) -> bool:
        """Return whether another pending pod comes first for a claim of this one."""
        first = (self._first_waiting.get((pod.key.namespace, claim)) for claim in pod.claims)
        return pod.node_name is None and any(key not in {None, pod.key} for key in first)

    def needs(self, pod: Pod) -> VolumeNeeds:
        """Return what the pod's volumes require of its node."""
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

    def compared_with(self, pod: Pod) -> Iterator[tuple[LabelSelector | None, int]]:
        """Yield the selectors of the pod's claims, each with the number of volumes to compare."""
        for storage_class, claims in self._static_claims(pod).items():
            volumes = len(self._by_class.get(storage_class, ()))
            yield from ((claim.selector, volumes) for claim in claims)

    def _resolve(self, pod: Pod) -> VolumeNeeds:
        selectors: list[NodeSelector] = []
        detail = ""
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
            detail = detail or needs.detail
        attached = sorted(set(self._attached(pod)))
        alone = Counter(v.driver for v in attached if self._users[v] <= 1)
        return VolumeNeeds(
            selectors=tuple(selectors),
            attachments=FrozenMap(sorted(alone.items())),
            shared=tuple(v for v in attached if self._users[v] > 1),
            zone_claim=self._zone_claim(pod),
            detail=detail,
        )

    def _zone_claim(self, pod: Pod) -> str:
        places = ((pod.key.namespace, name) for name in pod.claims)
        return next((self._zone_claims[p] for p in places if p in self._zone_claims), "")

    def _claim(self, pod: Pod, name: str) -> VolumeNeeds:
        claim = self._claims.get((pod.key.namespace, name))
        if claim is None:
            return _blocked(name, "does not exist", f"create claim {name}")
        if claim.deleting:
            remedy = f"create claim {name} again once it is gone"
            return _blocked(name, "is being deleted", remedy)
        place = (pod.key.namespace, name)
        user = self._in_use.get(place)
        if user is None and pod.node_name is None:
            user = self._first_waiting.get(place)
        if user not in {None, pod.key} and ONE_POD in claim.access_modes:
            what = f"is ReadWriteOncePod and {user} has it or comes first"
            remedy = f"take claim {name} from {user}, or give the pod a claim of its own"
            return _blocked(name, what, remedy, code="volume-in-use")
        if claim.volume_name:
            return self._with_its_volume(claim)
        if claim.too_complex and pod.node_name is None:
            remedy = f"give claim {name} a shorter selector, or name a volume in it"
            return _blocked(name, claim.too_complex, remedy)
        return self._unbound(claim, placed=pod.node_name is not None)

    def _with_its_volume(self, claim: PersistentVolumeClaim) -> VolumeNeeds:
        """Return what a claim that names a volume requires, whether or not it is bound."""
        named = f"{'is bound to' if claim.volume_bound else 'names'} {claim.volume_name}"
        volume = self._volumes.get(claim.volume_name)
        if volume is not None:
            if claim.volume_bound:
                return VolumeNeeds(selectors=selectors_of(volume))
            return self._only_named(claim, volume)
        what = f"{named}, which does not exist"
        remedy = f"create claim {claim.name} again: its volume is lost"
        if not self._volumes:
            what = f"{named}, and no PersistentVolume at all is known"
            remedy = _NOT_SAVED.format("persistent volumes")
        return _blocked(claim.name, what, remedy)

    def _only_named(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> VolumeNeeds:
        """Return why no pod can use a claim that names a volume and is not bound to it.

        Such a claim is bound by the PersistentVolume controller, or never; kube-scheduler waits.
        """
        why, remedy = "not yet", f"wait until claim {claim.name} is bound"
        if volume.claim == (claim.namespace, claim.name):
            why = "it is kept for a claim of this name, perhaps an earlier one"
            remedy = f"let spec.claimRef of volume {volume.name} name claim {claim.name} as it is"
        elif volume.claim is not None:
            why = f"it belongs to claim {'/'.join(volume.claim)}"
            remedy = f"let claim {claim.name} name a volume that is free"
        elif not (self._is_of_class(claim, volume) and serve([volume], [claim])):
            why = "it is too small, or of another storage class, volume mode or access mode"
            remedy = f"let claim {claim.name} name a volume that suits it"
        what = f"names {volume.name} and is not bound to it: {why}"
        return _blocked(claim.name, what, remedy)

    def _is_of_class(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
        wanted = claim.storage_class if claim.storage_class is not None else self._default
        return (wanted or "") == volume.storage_class

    def _unbound(self, claim: PersistentVolumeClaim, *, placed: bool) -> VolumeNeeds:
        storage_class = self._class_of(claim)
        if storage_class is None or not storage_class.wait_for_first_consumer:
            return self._never_bound(claim)
        if storage_class.provisioner == NO_PROVISIONER:
            if placed:
                return NO_VOLUMES
            return self._static_volumes([claim], storage_class.name)
        topologies = storage_class.allowed_topologies
        selectors = (NodeSelector(terms=topologies),) if topologies else ()
        if claim.selected_node not in self._nodes:
            return VolumeNeeds(selectors=selectors)
        # kube-scheduler tries no other node until the driver gives up.
        here = Requirement(key=NAME, operator="In", values=(str(claim.selected_node),))
        chosen = NodeSelector(terms=(NodeSelectorTerm(fields=(here,)),))
        what = f"the volume of claim {claim.name} is being made for node {claim.selected_node}"
        return VolumeNeeds(selectors=(*selectors, chosen), detail=what)

    def _never_bound(self, claim: PersistentVolumeClaim) -> VolumeNeeds:
        """Return why a claim will not be bound, on whatever node its pod runs."""
        name = claim.storage_class if claim.storage_class is not None else self._default
        if not name:
            what = "is not bound, names no storage class and there is no default"
            return _blocked(claim.name, what, f"name a storage class in claim {claim.name}")
        if name not in self._classes:
            what = f"is not bound and its storage class {name} does not exist"
            remedy = f"create storage class {name}"
            if not self._classes:
                what = f"is not bound, and no StorageClass at all is known, {name} neither"
                remedy = _NOT_SAVED.format("storage classes")
            return _blocked(claim.name, what, remedy)
        what = (
            f"is not bound and its storage class {name} binds at once (volumeBindingMode "
            "Immediate), not when a pod is placed"
        )
        remedy = f"wait until claim {claim.name} is bound, or give it a class that waits for a pod"
        return _blocked(claim.name, what, remedy)

    def _static_claims(self, pod: Pod) -> dict[str, list[PersistentVolumeClaim]]:
        """Return the pod's unbound claims of each class whose volumes are made by hand.

        A pod that has a node already runs without them or never runs: no program binds them for it.
        """
        found: dict[str, list[PersistentVolumeClaim]] = {}
        if pod.node_name is not None:
            return found
        for name in sorted(set(pod.claims)):
            claim = self._claims.get((pod.key.namespace, name))
            if claim is None or claim.volume_name:
                continue
            storage_class = self._class_of(claim)
            if storage_class is not None and storage_class.provisioner == NO_PROVISIONER:
                found.setdefault(storage_class.name, []).append(claim)
        return found

    def _static_volumes(
        self, claims: Sequence[PersistentVolumeClaim], storage_class: str
    ) -> VolumeNeeds:
        """Return local volumes made by hand: a free one of the class per claim, on one node.

        Volumes count as of one node if they have the same node affinity or none, as those of one
        node's disks do.
        """
        reserved = {(claim.namespace, claim.name) for claim in claims}
        free: dict[NodeSelector | None, list[PersistentVolume]] = {}
        for volume in self._by_class.get(storage_class, ()):
            if volume.claim is None or volume.claim in reserved:
                free.setdefault(volume.node_affinity, []).append(volume)
        anywhere = free.pop(None, [])
        if serve(anywhere, claims):
            return NO_VOLUMES
        terms = tuple(
            term
            for affinity, volumes in free.items()
            if affinity is not None and serve([*anywhere, *volumes], claims)
            for term in affinity.terms
        )
        if not terms:
            names = ", ".join(claim.name for claim in claims)
            remedy = f"add a free volume of storage class {storage_class} for claim {names}"
            what = f"finds no free volume of storage class {storage_class}"
            return _blocked(names, what, remedy)
        return VolumeNeeds(selectors=(NodeSelector(terms=terms),))


def _blocked(claim: str, what: str, remedy: str, code: str = "volume-binding") -> VolumeNeeds:
    """Return needs that no node meets because of one claim (or several, separated by commas)."""
    return VolumeNeeds(blocked=code, detail=f"claim {claim} {what}", claim=claim, remedy=remedy)
