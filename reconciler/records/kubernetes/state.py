"""A whole ClusterState from the objects of files or of caches."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter
from typing import Any

from reconciler.model.cluster import (
    CsiNode,
    DaemonSet,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    StorageClass,
)
from reconciler.model.snapshot import ClusterState, Ignored
from reconciler.records.garbage import garbage_collection_paused
from reconciler.records.kubernetes.documents import RawObject
from reconciler.records.kubernetes.fields import API_GROUPS
from reconciler.records.kubernetes.memory import Memory
from reconciler.records.kubernetes.objects import (
    ClusterObject,
    Decoded,
    Identity,
    ObjectDecoder,
    unreadable,
)


def decode_cluster(
    objects: Iterable[RawObject], decoder: ObjectDecoder | None = None
) -> ClusterState:
    """Decode objects into one state; of the same object twice the last one counts.

    Objects that cannot be read and counts of kinds that planning does not use are in `ignored`.
    """
    decoder = decoder or ObjectDecoder()
    unused: Counter[str] = Counter()
    decoded: dict[Identity | int, Decoded] = {}
    with garbage_collection_paused():
        for number, each in enumerate(objects):
            if is_unused(each):
                unused[each.kind] += 1
                continue
            result = (
                decoder.decode(each.kind, each.raw)
                if each.kind
                else unreadable("", bytes(each.raw))
            )
            if result is not None:
                # Without a name nothing says that two objects are the same one.
                named = bool(result.identity[2]) or isinstance(result.value, Memory)
                decoded.pop(result.identity, None)
                decoded[result.identity if named else number] = result
        return assemble(
            (each.value for each in decoded.values() if each.value is not None),
            [each.ignored for each in decoded.values() if each.ignored is not None],
            unused,
        )


def is_unused(each: RawObject) -> bool:
    """Whether planning does not use the object's kind."""
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
    memory = merge_memories(by_type.get(Memory, []))
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
        last_drain_at=memory.last_drain_at,
        memories=memory.fleets,
        demands=memory.demands,
        lost_fleets=memory.lost_fleets,
        ignored=tuple(sorted((*ignored, *counted))),
        relists=relists,
    )


pod_order: Callable[[Pod], tuple[str, str, str]] = attrgetter(
    "key.namespace", "key.name", "key.uid"
)
"""The order of pods in a state; a plain tuple sorts ten times faster than a PodKey."""


def ours_first(leases: Iterable[Decoded], namespace: str) -> list[Decoded]:
    """Our own Lease alone once it holds a state; until then what an older install left elsewhere.

    Another's word would count as often as ours, and be written over with every cycle.
    """
    every = list(leases)
    own = [e for e in every if isinstance(e.value, Memory) and e.value.namespace == namespace]
    return own if any(e.value.written for e in own if isinstance(e.value, Memory)) else every


def merge_memories(memories: Iterable[Memory]) -> Memory:
    """One memory of several Leases: the latest drain, and each fleet's last word."""
    known = list(memories)
    fleets = {(each.fleet, each.region): each for memory in known for each in memory.fleets}
    demands = {(d.demand, d.fleet, d.region): d for memory in known for d in memory.demands}
    lost = {(each.region, each.id): each for memory in known for each in memory.lost_fleets}
    return Memory(
        last_drain_at=max(
            (each.last_drain_at for each in known if each.last_drain_at), default=None
        ),
        fleets=tuple(fleets[key] for key in sorted(fleets)),
        demands=tuple(demands[key] for key in sorted(demands)),
        lost_fleets=tuple(lost[key] for key in sorted(lost)),
    )


def _name(value: Node | PersistentVolume | StorageClass | CsiNode | Namespace) -> str:
    return value.name


def _full_name(
    value: DaemonSet | PodDisruptionBudget | PersistentVolumeClaim,
) -> tuple[str, str]:
    return value.namespace, value.name
