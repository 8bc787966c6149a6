"""Builds a ClusterState from the objects of files or of caches."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from reconciler.machine.garbage import garbage_collection_paused
from reconciler.model.cluster import DaemonSet, Namespace, Node, Pod, PodDisruptionBudget
from reconciler.model.snapshot import ClusterState, Ignored
from reconciler.model.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from reconciler.records.kubernetes.documents import RawObject
from reconciler.records.kubernetes.fields import API_GROUPS
from reconciler.records.kubernetes.objects import (
    ClusterObject,
    Decoded,
    Identity,
    ObjectDecoder,
    unreadable,
)
from reconciler.records.kubernetes.saved_state import LEASE_NAMESPACE, SavedState


def decode_cluster(
    objects: Iterable[RawObject],
    decoder: ObjectDecoder | None = None,
    lease_namespace: str = LEASE_NAMESPACE,
) -> ClusterState:
    """Decode objects into one state; of an object that occurs twice the last one counts.

    Unreadable objects, and counts of kinds that planning does not use, are in `ignored`. Of several
    Leases only that of `lease_namespace` counts.
    """
    decoder = decoder or ObjectDecoder()
    unused: Counter[str] = Counter()
    decoded: dict[Identity | int, Decoded] = {}
    with garbage_collection_paused():
        for number, raw_object in enumerate(objects):
            if is_unused(raw_object):
                unused[raw_object.kind] += 1
                continue
            result = (
                decoder.decode(raw_object.kind, raw_object.raw)
                if raw_object.kind
                else unreadable("", bytes(raw_object.raw))
            )
            if result is not None:
                # Without a name nothing shows that two objects are the same one.
                named = bool(result.identity[2])
                decoded.pop(result.identity, None)
                decoded[result.identity if named else number] = result
        used = without_foreign_leases(list(decoded.values()), lease_namespace)
        if len(used) < len(decoded):
            unused["Lease"] += len(decoded) - len(used)
        return assemble(
            (each.value for each in used if each.value is not None),
            [each.ignored for each in used if each.ignored is not None],
            unused,
        )


def is_unused(each: RawObject) -> bool:
    """Return whether planning does not use the object's kind."""
    if not each.kind:
        return False
    group = each.api_version.rpartition("/")[0]
    expected = API_GROUPS.get(each.kind)
    return expected is None or (bool(each.api_version) and group != expected)


def assemble(
    values: Iterable[ClusterObject],
    ignored: Iterable[Ignored] = (),
    unused: Counter[str] | None = None,
    relists: int = 1,
) -> ClusterState:
    """Sort decoded values into a state, each kind by name: equal input gives an equal state."""
    by_type: defaultdict[type, list[Any]] = defaultdict(list)
    for kind, alike in groupby(values, key=type):
        by_type[kind] += alike
    saved = _without_repeats(next(iter(by_type.get(SavedState, ())), SavedState()))
    counted = (
        Ignored(code="unused-kind", kind=kind, count=count)
        for kind, count in (unused or {}).items()
    )
    return ClusterState(
        pods=tuple(sorted(by_type.get(Pod, ()), key=pod_order)),
        nodes=tuple(sorted(by_type.get(Node, ()), key=_name)),
        daemon_sets=tuple(sorted(by_type.get(DaemonSet, ()), key=_full_name)),
        budgets=tuple(sorted(by_type.get(PodDisruptionBudget, ()), key=_full_name)),
        claims=tuple(sorted(by_type.get(PersistentVolumeClaim, ()), key=_full_name)),
        volumes=tuple(sorted(by_type.get(PersistentVolume, ()), key=_name)),
        storage_classes=tuple(sorted(by_type.get(StorageClass, ()), key=_name)),
        csi_nodes=tuple(sorted(by_type.get(CsiNode, ()), key=_name)),
        namespaces=tuple(sorted(by_type.get(Namespace, ()), key=_name)),
        last_drain_at=saved.last_drain_at,
        last_descheduled_at=saved.last_descheduled_at,
        fleet_states=saved.fleets,
        demands=saved.demands,
        lost_fleets=saved.lost_fleets,
        stuck_ends=saved.stuck_ends,
        proof=saved.proof,
        raises=saved.raises,
        resumed_updates=saved.resumed_updates,
        interrupted_pools=saved.interrupted_pools,
        protected_instances=saved.protected_instances,
        ignored=tuple(sorted((*ignored, *counted))),
        relists=relists,
    )


pod_order: Callable[[Pod], tuple[str, str, str]] = attrgetter(
    "key.namespace", "key.name", "key.uid"
)
"""The order of pods in a state; a plain tuple sorts ten times faster than a PodKey."""


def without_foreign_leases(decoded: list[Decoded], namespace: str) -> list[Decoded]:
    """Return all objects, except foreign Leases named `fleet-reconciler`.

    Files may hold the Lease of an install in any namespace. A single one is used; of several only
    that of `namespace` counts, since anybody can create one in a namespace of theirs.
    """
    leases = [each for each in decoded if isinstance(each.value, SavedState)]
    if len(leases) <= 1:
        return decoded
    foreign = {
        id(lease)
        for lease in leases
        if isinstance(lease.value, SavedState) and lease.value.namespace != namespace
    }
    return [each for each in decoded if id(each) not in foreign]


def _without_repeats(saved: SavedState) -> SavedState:
    """Return the saved state in order; of a fleet or demand that is named twice, the last entry."""
    fleets = {(fleet.fleet, fleet.region): fleet for fleet in saved.fleets}
    demands = {(demand.demand, demand.fleet, demand.region): demand for demand in saved.demands}
    lost = {(lost_fleet.region, lost_fleet.id): lost_fleet for lost_fleet in saved.lost_fleets}
    return replace(
        saved,
        fleets=tuple(fleets[key] for key in sorted(fleets)),
        demands=tuple(demands[key] for key in sorted(demands)),
        lost_fleets=tuple(lost[key] for key in sorted(lost)),
        stuck_ends=tuple(
            sorted({stuck_end.instance: stuck_end for stuck_end in saved.stuck_ends}.values())
        ),
        raises=tuple(sorted(saved.raises, key=lambda each: each.at)),
        interrupted_pools=tuple(sorted(set(saved.interrupted_pools))),
        protected_instances=tuple(
            sorted(
                {
                    protected_instance.instance: protected_instance
                    for protected_instance in saved.protected_instances
                }.values()
            )
        ),
    )


def _name(value: Node | PersistentVolume | StorageClass | CsiNode | Namespace) -> str:
    return value.name


def _full_name(
    value: DaemonSet | PodDisruptionBudget | PersistentVolumeClaim,
) -> tuple[str, str]:
    return value.namespace, value.name
