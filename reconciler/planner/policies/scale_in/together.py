"""Several nodes whose pods only one larger node could take in, which costs less than all of them.

Asked about when none of them can go alone. The larger node is asked for first; when it has come,
its members are drained onto it one after the other, as any node is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.planner.moves import Mover
from reconciler.planner.placement.classes import Group
from reconciler.planner.policies.scale_in.candidates import Candidate, may_go_in_time
from reconciler.planner.policies.scale_in.consolidate import Consolidator
from reconciler.planner.policies.scale_in.missed import Misses
from reconciler.planner.policies.scale_in.scene import Scene

ASKED_MAX = 20
"""Nodes that are asked about; fewer of them mostly do."""
FLEETS_MAX = 8
"""Fleets of which one more node is tried, the cheapest first."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """The one node that would take the pods."""

    key: FleetKey
    row: int | None
    """None for one that would have to be asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """Nodes that may go together."""

    members: tuple[Candidate, ...]
    place: Place


class Unifier:
    """Finds unions; changes nothing but where it says so.

    Args:
        scene: The run.
        mover: Its state counts: what has been moved so far has its places.
        consolidator: What saves enough.
        misses: Who would miss a node.
        grouped: The pods of a candidate, by class.
    """

    def __init__(
        self,
        scene: Scene,
        mover: Mover,
        consolidator: Consolidator,
        misses: Misses,
        grouped: Callable[[Candidate], list[Group]],
    ) -> None:
        self._scene = scene
        self._mover = mover
        self._consolidator = consolidator
        self._misses = misses
        self._grouped = grouped

    def find(
        self, candidates: Sequence[Candidate], idle: Iterable[NodeName], *, buy: bool
    ) -> Union | None:
        """The first nodes, in their order, that may go when one larger node takes their pods.

        All of one sector and region, and as few as it needs to save enough. A node that is there or
        launching is taken before one is asked for, and of each the cheapest that will do.

        Args:
            candidates: Nodes that cannot go alone.
            idle: Empty nodes that could stay instead.
            buy: Whether one more node of a fleet may be asked for.
        """
        if not self._scene.cycle.settings.consolidation:
            return None
        by_place: dict[tuple[str, Region], list[Candidate]] = {}
        for candidate in candidates:
            status = candidate.status
            where = status.settings.sector, status.key.region
            by_place.setdefault(where, []).append(candidate)
        unions = (
            self._union(asked, place)
            for (sector, region), members in by_place.items()
            for asked in [members[:ASKED_MAX]]
            if len(asked) > 1
            for place in self._places(sector, region, asked, idle, buy=buy)
        )
        return next(filter(None, unions), None)

    def can_begin(self, union: Union) -> bool:
        """Whether its members can go, one after the other, as things are when it is asked."""
        return self._can_go_in_turn(union.members, union.place)

    def keep_places(self, union: Union) -> None:
        """The pods have their places from now on: whoever comes later finds them taken."""
        row = self._row(union.place)
        for member in union.members:
            self._mover.move(member.node, self._grouped(member), [row])

    def _places(
        self,
        sector: str,
        region: Region,
        asked: Sequence[Candidate],
        idle: Iterable[NodeName],
        *,
        buy: bool,
    ) -> Iterator[Place]:
        cycle = self._scene.cycle
        own = [
            s
            for s in cycle.inventory.fleets
            if s.settings.sector == sector
            and s.key.region == region
            and self._consolidator.may_stay(s.key)
        ]
        keys = {status.key for status in own if self._is_larger(asked, status.key)}
        there = [
            Place(cycle.inventory.fleet_of_node[name], cycle.row_of[name]) for name in sorted(idle)
        ]
        coming = [Place(cycle.seats[r].key, r) for r in self._consolidator.unpromised_rows()]
        for places in (there, coming):
            useful = [p for p in places if p.key in keys and self._consolidator.saves(asked, p.key)]
            yield from sorted(useful, key=self._price)
        if buy:
            # Where one of a fleet stands idle or is coming and will not do, another will not.
            known = {p.key for p in (*there, *coming)}
            growing = [
                Place(status.key, None)
                for status in own
                if status.key in keys - known and self._consolidator.may_grow(asked, status)
            ]
            yield from islice(sorted(growing, key=self._price), FLEETS_MAX)

    def _price(self, place: Place) -> tuple[int, FleetKey, int]:
        """The order of places; a list has all of one kind, so the row only breaks ties."""
        offer = self._scene.cycle.offers[place.key]
        return offer.nano_usd_per_hour, place.key, place.row or 0

    def _is_larger(self, asked: Sequence[Candidate], key: FleetKey) -> bool:
        """Whether one costs more than any of the nodes: what costs less was asked about alone."""
        offers = self._scene.cycle.offers
        least = min(offers[c.status.key].nano_usd_per_hour for c in asked)
        return offers[key].nano_usd_per_hour > least

    def _union(self, asked: Sequence[Candidate], place: Place) -> Union | None:
        """As few of the nodes as it needs to save enough, if they can go one after the other."""
        offers = self._scene.cycle.offers
        most = offers[place.key].nano_usd_per_hour
        smaller = [c for c in asked if offers[c.status.key].nano_usd_per_hour < most]
        members = self._fitting(smaller, place)
        if members and self._can_go_in_turn(members, place):
            return Union(tuple(members), place)
        return None

    def _fitting(self, asked: Sequence[Candidate], place: Place) -> list[Candidate]:
        """Take nodes in until that saves enough; none if it never does. All is undone."""
        room = self._scene.room
        mark = self._mover.mark()
        row = self._row(place)
        members: list[Candidate] = []
        for candidate in asked:
            if not self._mover.staying_alone(candidate.node):
                continue
            if not may_go_in_time(self._scene, candidate):
                continue
            if self._mover.move(candidate.node, self._grouped(candidate), [row]) is None:
                continue
            members.append(candidate)
            room.leave(candidate.status.key)
            if len(members) > 1 and self._consolidator.saves(members, place.key):
                break
        for member in members:
            room.stay(member.status.key)
        self._mover.undo(mark)
        enough = len(members) > 1 and self._consolidator.saves(members, place.key)
        return members if enough else []

    def _can_go_in_turn(self, members: Sequence[Candidate], place: Place) -> bool:
        """Whether each could still be drained after the ones before it; all is undone.

        Their pods are then where kube-scheduler has put them. A node bought for several of which
        only the first can go would be bought again and again.
        """
        mark = self._mover.mark()
        row = self._row(place)
        can = all(self._goes(member, row) for member in members)
        self._mover.undo(mark)
        return can

    def _goes(self, member: Candidate, row: int) -> bool:
        """Whether its drain could begin; its pods go where kube-scheduler puts them."""
        if not self._mover.staying_alone(member.node):
            return False
        groups, receiving = self._grouped(member), frozenset(self._mover.receiving)
        moves = self._mover.move(member.node, groups, [row])
        if (
            moves is None
            or not self._mover.survives_spreading(moves, groups)
            or not self._scene.reserve.holds(member.status.settings.sector, self._mover.staying)
            or self._misses.who_misses(member, moves, receiving) is not None
        ):
            return False
        self._mover.spread(moves, groups, [row])
        return True

    def _row(self, place: Place) -> int:
        """The row of the place; a new one for a node that would have to be asked for."""
        if place.row is not None:
            return place.row
        return self._mover.add_row(self._scene.cycle.offers[place.key].row)
