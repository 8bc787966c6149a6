"""Sorts the pods of a cycle into classes: what runs on nodes, and what waits for a place."""

from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter, lt

from reconciler.model.cluster import Pod
from reconciler.planner.demand import UnschedulablePods
from reconciler.planner.placement.classes import ClassTable, PodClass
from reconciler.planner.pod_groups import PodGroup
from reconciler.planner.reservations import WaitingClass


def bound_by_class(
    groups: Iterable[PodGroup], table: ClassTable
) -> list[tuple[PodClass, Sequence[Pod]]]:
    """Return bound pods by class; a class may occur more than once."""
    return [
        (table.of(pods[0], bound=True), pods)
        for group in groups
        for pods in table.parted(group.pods)
    ]


def waiting_classes(
    unschedulable: Iterable[UnschedulablePods], table: ClassTable
) -> list[WaitingClass]:
    """Return the demand; classes are numbered by first pod names, not in the snapshot's order."""
    parts = [(_by_name(w.group), w) for w in unschedulable]
    split = [(pods, w) for named, w in parts for pods in table.parted(named)]
    split.sort(key=lambda part: (-part[1].group.traits.spec.priority, _name(part[0][0])))
    grouped: dict[tuple[int, tuple[str, ...]], WaitingClass] = {}
    mixed: dict[tuple[int, tuple[str, ...]], WaitingClass] = {}
    for pods, unschedulable_pods in split:
        pod_class = table.of(pods[0], bound=False)
        key = (pod_class.number, unschedulable_pods.sectors)
        known = grouped.get(key)
        if known is None:
            known = WaitingClass(
                pod_class=pod_class, sectors=unschedulable_pods.sectors, pods=[*pods]
            )
            grouped[key] = known
        else:
            known.pods += pods
            mixed[key] = known
        known.nominated |= unschedulable_pods.group.traits.nominated
    for known in mixed.values():
        known.pods.sort(key=_name)
    return sorted(grouped.values(), key=_largest_first)


_name = attrgetter("key.namespace", "key.name", "key.uid")


def _by_name(group: PodGroup) -> list[Pod]:
    """Return the pods of one namespace by name; lists of the API server are sorted already."""
    if len(group.pods) == 1:
        return group.pods
    names = list(map(attrgetter("key.name"), group.pods))
    in_order = all(map(lt, names, islice(names, 1, None)))
    return group.pods if in_order else sorted(group.pods, key=_name)


def _largest_first(waiting: WaitingClass) -> tuple[object, ...]:
    """Return the sort key: by priority, then size, then name."""
    pod_class = waiting.pod_class
    return (-pod_class.spec.priority, -pod_class.size, waiting.pods[0].key)
