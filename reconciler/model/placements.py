"""Where pods will run: planned in a few groups, read as one value per pod."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import overload

from reconciler.model.cluster import Pod
from reconciler.model.ids import NodeName, PodKey, Region
from reconciler.model.plan import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A place where pods will run, in the fields of `Placement`."""

    node: NodeName | None = None
    fleet: str | None = None
    region: Region | None = None
    launching: int | None = None
    new_node: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """Pods and their places: the first `amounts[0]` of them go to the first place, and so on."""

    pods: Sequence[Pod]
    destinations: Sequence[Destination]
    amounts: Sequence[int]
    """They add up to the number of pods."""
    moved_from: Mapping[PodKey, NodeName] = field(default_factory=dict)
    """Where those of the pods run that are moved."""


class Placements(Sequence[Placement]):
    """Placements by namespace and name, kept as groups until they are read.

    It reads, compares and hashes like the tuple of its placements. A plan for tens of thousands of
    pods is made in groups; the values per pod are made when the first one is read.
    """

    __slots__ = ("_groups", "_known", "_length", "_single")

    def __init__(self, groups: Iterable[Dispatch] = (), single: Iterable[Placement] = ()) -> None:
        """Store groups and single placements, in any order."""
        self._groups = tuple(groups)
        self._single = tuple(single)
        self._length = len(self._single) + sum(len(group.pods) for group in self._groups)
        self._known: tuple[Placement, ...] | None = None

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Placement]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> Placement: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Placement, ...]: ...
    def __getitem__(self, index: int | slice) -> Placement | tuple[Placement, ...]:
        """Return the placement at an index, or those of a slice."""
        return self._all()[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Placements):
            return self._all() == other._all()
        return self._all() == other

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())

    def on_existing_nodes(self) -> Iterator[tuple[PodKey, NodeName]]:
        """Yield what `pods_on_existing_nodes` does, from the groups that name such nodes."""
        yield from pods_on_existing_nodes(self._single)
        for group in self._groups:
            if any(place.node is not None for place in group.destinations):
                placed = zip(group.pods, _placed(group), strict=True)
                yield from pods_on_existing_nodes(
                    place for pod, place in placed if pod.nominated_node_name != place.node
                )

    def _all(self) -> tuple[Placement, ...]:
        if self._known is None:
            made = chain(self._single, chain.from_iterable(map(_placed, self._groups)))
            self._known = tuple(sorted(made, key=lambda p: (p.pod.namespace, p.pod.name)))
        return self._known


def pods_on_existing_nodes(placements: Iterable[Placement]) -> Iterator[tuple[PodKey, NodeName]]:
    """Yield each pending pod that is placed on a node that exists, with the node.

    Those that kube-scheduler has nominated for it are left out, where pods are in groups: it binds
    them when the pods that they preempted have ended, which may take their whole grace period.
    """
    if isinstance(placements, Placements):
        yield from placements.on_existing_nodes()
        return
    for placement in placements:
        if placement.node is not None and placement.moved_from is None:
            yield placement.pod, placement.node


def _placed(group: Dispatch) -> Iterator[Placement]:
    places = chain.from_iterable(map(repeat, group.destinations, group.amounts))
    for pod, place in zip(group.pods, places, strict=True):
        yield Placement(
            pod=pod.key,
            node=place.node,
            fleet=place.fleet,
            region=place.region,
            launching=place.launching,
            new_node=place.new_node,
            moved_from=group.moved_from.get(pod.key),
        )
