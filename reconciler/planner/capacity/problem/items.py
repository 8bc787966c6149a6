"""From waiting classes to items: which offers each may use, and in which topology domain.

Rules on domains that nodes share (zones) are settled here, before packing: pods are dealt out to
places, and an item is the part of a class that goes to one place. Rules per hostname become caps
per node.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.problem.groups_near import GroupNear, groups_near
from reconciler.planner.capacity.problem.limited_room import LimitedRoom
from reconciler.planner.capacity.problem.node_rules import CrossingRules
from reconciler.planner.capacity.problem.problem import Item, Offer
from reconciler.planner.placement.arrays import UNLIMITED, BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.domains import (
    Coordinates,
    SharedRules,
    Tallies,
    assign,
    shared_keys,
)
from reconciler.planner.placement.filters import resources
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.simulation import Simulation

WAVES_MAX = 16
"""Pods near others that are near others: so many links are followed before packing."""

Want = tuple[PodClass, int]
"""A class and how many of its pods still wait."""
Part = tuple[int, BoolArray]
"""How many pods of a class go to one place, and the offers that take them there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealt:
    """Items to pack, caps per node, and what must be placed pod by pod."""

    items: tuple[Item, ...]
    caps: tuple[int, ...]
    singly: tuple[Want, ...]
    """Classes whose rules depend on each other's nodes (affinity by hostname)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """What empty nodes of the offers make of pods; one object for all classes alike to them."""

    slots: IntArray
    """(offers,): pods that an empty node takes by static filters and size."""
    feasible: BoolArray
    """(offers,): takes a pod, and may be bought."""
    places: dict[tuple[str, ...], list[tuple[Coordinates, BoolArray]]]
    """By topology keys: the places with feasible offers, the cheapest first, and which those are.

    Filled when first asked for."""


class OfferTable:
    """The offers as the filters see them; answers are kept for classes alike."""

    def __init__(self, sim: Simulation, offers: Sequence[Offer]) -> None:
        self._sim = sim
        self.offers = tuple(offers)
        kinds = [sim.kind_of(offer.node.row) for offer in offers]
        self._kinds, self._kind_at = np.unique(np.array(kinds, dtype=np.int64), return_inverse=True)
        width = len(sim.dimensions.names)
        self.vectors = np.array([o.vector for o in offers], dtype=np.int64).reshape(-1, width)
        self.over = np.array([o.over_subscription for o in offers], dtype=np.int64)
        self.prices = np.array([o.compared_nano_usd for o in offers], dtype=np.int64)
        self.penalised = any(offer.penalty_nano_usd for offer in offers)
        self._open = np.array([o.most > 0 for o in offers], dtype=np.bool_)
        self._allowed: dict[int, BoolArray] = {}
        self._fits: dict[tuple[int, bytes], Fit] = {}
        self._places: dict[tuple[str, ...], tuple[list[Coordinates], IntArray]] = {}

    def fit(self, pod_class: PodClass) -> Fit:
        """What the offers make of the class; rules between pods aside."""
        key = (pod_class.static, pod_class.requests.tobytes())
        known = self._fits.get(key)
        if known is None:
            slots = self._slots(pod_class)
            known = Fit(slots=slots, feasible=(slots > 0) & self._open, places={})
            self._fits[key] = known
        return known

    def _slots(self, pod_class: PodClass) -> IntArray:
        admitting = self._admitting(pod_class)
        if not np.count_nonzero(admitting):
            return np.zeros(len(admitting), dtype=np.int64)
        room = resources.room(
            self.vectors, self.vectors, self.over, pod_class.requests, pod_class.columns
        )
        return np.where(admitting, np.minimum(room, UNLIMITED), 0)

    def slots(self, pod_class: PodClass) -> IntArray:
        """(offers,): pods that an empty node takes by static filters and size."""
        return self.fit(pod_class).slots

    def feasible(self, pod_class: PodClass) -> BoolArray:
        """Offers that take the class and may be bought."""
        return self.fit(pod_class).feasible

    def _admitting(self, pod_class: PodClass) -> BoolArray:
        known = self._allowed.get(pod_class.static)
        if known is None:
            allowed = [not self._sim.refusal(pod_class, int(k)) for k in self._kinds]
            known = np.array(allowed, dtype=np.bool_)[self._kind_at]
            self._allowed[pod_class.static] = known
        return known

    def places(
        self, pod_class: PodClass, keys: tuple[str, ...]
    ) -> list[tuple[Coordinates, BoolArray]]:
        """Where the class may go, the place with the cheapest offer first, and by which offers."""
        fit = self.fit(pod_class)
        if keys not in fit.places:
            fit.places[keys] = self._feasible_places(fit.feasible, keys)
        return fit.places[keys]

    def places_of(self, keys: tuple[str, ...]) -> IntArray:
        """(offers,): equal where offers are in the same place by these topology keys."""
        return self._all_places(keys)[1]

    def only_place(self, allowed: BoolArray, key: str) -> int | None:
        """The one place by this key that all the offers are in, if there is one."""
        distinct, where = self._all_places((key,))
        numbers = where[allowed]
        return distinct[numbers[0]][0] if (numbers == numbers[0]).all() else None

    def _feasible_places(
        self, feasible: BoolArray, keys: tuple[str, ...]
    ) -> list[tuple[Coordinates, BoolArray]]:
        distinct, where = self._all_places(keys)
        cheapest = np.full(len(distinct), np.iinfo(np.int64).max)
        np.minimum.at(cheapest, where[feasible], self.prices[feasible])
        numbers = np.lexsort((np.arange(len(distinct)), cheapest))
        numbers = numbers[: int((cheapest < np.iinfo(np.int64).max).sum())]
        return [(distinct[number], feasible & (where == number)) for number in numbers]

    def _all_places(self, keys: tuple[str, ...]) -> tuple[list[Coordinates], IntArray]:
        """The distinct places of the offers for these keys, and which one each offer is in."""
        if keys not in self._places:
            at = [
                tuple(self._sim.topologies[k].place_of(o.node.row.variants) for k in keys)
                for o in self.offers
            ]
            distinct = sorted(set(at), key=lambda place: self._labels_of(place, keys))
            number = {place: i for i, place in enumerate(distinct)}
            self._places[keys] = distinct, np.array([number[p] for p in at], dtype=np.int64)
        return self._places[keys]

    def _labels_of(self, place: Coordinates, keys: tuple[str, ...]) -> list[list[str]]:
        """The values of the keys' labels there, or what they may be; none without the label.

        Places are in the order of these: that of their numbers changes with the nodes there are.
        """
        found = []
        for key, domain in zip(keys, place, strict=True):
            topology = self._sim.topologies[key]
            domains = topology.choices[-2 - domain] if domain < -1 else (domain,)
            found.append([topology.values[d] for d in domains if d >= 0])
        return found


def deal(sim: Simulation, wants: Sequence[Want], table: OfferTable) -> Dealt:
    """Deal every class out to the places where it may go."""
    classes = [pod_class for pod_class, _ in wants]
    caps, crossing = _Caps(sim, classes), CrossingRules(sim, classes)
    singly = [want for want in wants if _goes_singly(sim, want[0], table)]
    apart = {pod_class.number for pod_class, _ in singly}
    together = [want for want in wants if want[0].number not in apart]
    items: list[Item] = []
    for (pod_class, _), parts in zip(together, _Dealing(sim, together, table).parts(), strict=True):
        groups, rules = caps.groups_of(pod_class), crossing.of(pod_class)
        fit = table.fit(pod_class)
        for amount, allowed in parts:
            slots = np.where(allowed, fit.slots, 0)
            items.append(
                Item(pod_class=pod_class, count=amount, slots=slots, groups=groups, rules=rules)
            )
    return Dealt(items=tuple(items), caps=caps.values, singly=tuple(singly))


def _goes_singly(sim: Simulation, pod_class: PodClass, table: OfferTable) -> bool:
    """Whether the class must be near pods on one node, or in a zone that EC2 has yet to choose."""
    keys = tuple(sorted({c.topology.key for c in sim.links(pod_class).affinity}))
    if not keys or HOSTNAME in keys:
        return bool(keys)
    return any(min(place) < -1 for place, _ in table.places(pod_class, keys))


class _Dealing:
    """Which places pods go to: class after class, those that must be near others after these."""

    def __init__(self, sim: Simulation, wants: Sequence[Want], table: OfferTable) -> None:
        self._sim = sim
        self._wants = wants
        self._table = table
        self._tallies: Tallies = {}
        classes = [pod_class for pod_class, _ in wants]
        self._keys = {key for each in classes for key in shared_keys(sim.links(each))}
        self._groups = groups_near(sim, classes)
        self._chosen: dict[int, BoolArray] = {}
        """By the number of a group's class the offers of the group's place."""
        self._room = LimitedRoom(sim, table.offers, sum(count for _, count in wants))
        self._parts: list[list[Part]] = [[] for _ in wants]

    def parts(self) -> Sequence[Sequence[Part]]:
        """Of each class the amounts and offers per place; one part where no place matters."""
        asked = sorted(range(len(self._wants)), key=self._turn)
        for _ in range(WAVES_MAX):
            later = [number for number in asked if not self._deal(number)]
            if not later or len(later) == len(asked):
                break
            asked = later
        return self._parts

    def _turn(self, number: int) -> tuple[int, int]:
        """By priority; those without rules or choice first, groups last, where all matter."""
        pod_class, _ = self._wants[number]
        links = self._sim.links(pod_class)
        turn = 3 if links.affinity else 2
        if not links.affinity and pod_class.number not in self._groups:
            keys = shared_keys(links)
            turn = int(bool(keys) and len(self._table.places(pod_class, keys)) > 1)
        return -pod_class.spec.priority, turn

    def _deal(self, number: int) -> bool:
        """Deal one class; False while it must be near pods that are nowhere yet."""
        pod_class, count = self._wants[number]
        links, feasible = self._sim.links(pod_class), self._table.feasible(pod_class)
        if not feasible.any():
            return True
        keys = shared_keys(links)
        if keys:
            parts = self._by_rules(pod_class, count, keys)
        else:
            parts = self._without_rules(pod_class, count, feasible)
        for amount, allowed in parts:
            self._note(pod_class, amount, allowed, keys)
        self._parts[number] = parts
        return bool(parts) or not links.affinity or links.affinity_itself

    def _note(
        self, pod_class: PodClass, count: int, allowed: BoolArray, keys: tuple[str, ...]
    ) -> None:
        """Count pods that have but one place by a key, and the room that they take there."""
        if not self._keys:
            return
        fed = {feed.counter.topology.key for feed in self._sim.links(pod_class).feeds}
        for key in sorted((fed & self._keys).difference(keys)):
            place = self._table.only_place(allowed, key)
            if place is not None:
                SharedRules(self._sim, pod_class, (key,), self._tallies).take((place,), count)
        if self._room and (
            keys or any(self._table.only_place(allowed, key) is not None for key in self._keys)
        ):
            self._room.take(pod_class, count, allowed)

    def _without_rules(self, pod_class: PodClass, count: int, feasible: BoolArray) -> list[Part]:
        """All of it anywhere; what others must be near, in their place as far as there is room."""
        inside = self._chosen_for(pod_class)
        if inside is None or not (feasible & inside).any():
            return [(count, feasible)]
        there = self._room.copy().take(pod_class, count, feasible & inside)
        parts = [(there, feasible & inside), (count - there, feasible)]
        return [(amount, allowed) for amount, allowed in parts if amount]

    def _by_rules(self, pod_class: PodClass, count: int, keys: tuple[str, ...]) -> list[Part]:
        rules = SharedRules(self._sim, pod_class, keys, self._tallies)
        found = self._in_order(pod_class, count, keys, together=rules.together)
        places = [place for place, _ in found]
        rules.open_domains(places)
        amounts = [0] * len(places)
        if self._room and not rules.together:
            room = [self._room.copy().take(pod_class, count, allowed) for _, allowed in found]
            amounts = assign(rules, places, room, count)
        # What finds no room as things look is dealt as well: the packing may know better.
        more = assign(rules, places, [UNLIMITED] * len(places), count - sum(amounts))
        amounts = [one + other for one, other in zip(amounts, more, strict=True)]
        return [
            (amount, allowed) for amount, (_, allowed) in zip(amounts, found, strict=True) if amount
        ]

    def _in_order(
        self, pod_class: PodClass, count: int, keys: tuple[str, ...], *, together: bool
    ) -> list[tuple[Coordinates, BoolArray]]:
        """The places of a class, those to be preferred first.

        All go to one place where they must be together: the first that has room for them all,
        else for the most of them. Else the place is preferred where the next node is cheapest.
        """
        found = self._table.places(pod_class, keys)
        inside = self._chosen_for(pod_class)
        if not self._room and inside is None:
            return found

        def rank(each: tuple[Coordinates, BoolArray]) -> tuple[bool, int]:
            allowed, chosen = each[1], inside is None or bool((each[1] & inside).any())
            if not self._room:
                return not chosen, 0
            if together:
                return not chosen, -self._room.copy().take(pod_class, count, allowed)
            price = self._room.cheapest(pod_class, allowed)
            return not chosen, UNLIMITED**2 if price is None else price

        return sorted(found, key=rank)

    def _chosen_for(self, pod_class: PodClass) -> BoolArray | None:
        """The offers of the place that the class's group goes to, for a class of a group."""
        group = self._groups.get(pod_class.number)
        if group is None:
            return None
        if pod_class.number not in self._chosen:
            inside = self._place_for(group)
            members = (*group.followers, *group.leaders)
            self._chosen.update((member.number, inside) for member in members)
        return self._chosen[pod_class.number]

    def _place_for(self, group: GroupNear) -> BoolArray:
        """The offers of the place with room for the most of a group's pods.

        Above all, none of those that others must be near should have to go elsewhere.
        """
        members = {each.number for each in (*group.followers, *group.leaders)}
        wants = [want for want in self._wants if want[0].number in members]
        leaders = {leader.number for leader in group.leaders}
        where = self._table.places_of((group.key,))
        open_to = [self._table.places(each, (group.key,)) for each in group.followers]
        numbers = dict.fromkeys(
            int(where[allowed.argmax()]) for found in open_to for _, allowed in found
        )

        def rank(number: int) -> tuple[int, ...]:
            room, elsewhere = self._room.copy(), 0
            left: dict[int, int] = {}
            for pod_class, count in wants:
                allowed = self._table.feasible(pod_class) & (where == number)
                possible = bool(allowed.any()) and not self._kept_out(pod_class, allowed, group.key)
                taken = room.take(pod_class, count, allowed) if possible else 0
                priority = -pod_class.spec.priority
                left[priority] = left.get(priority, 0) + count - taken
                elsewhere += pod_class.number in leaders and not possible
            return elsewhere, *(left[priority] for priority in sorted(left))

        return np.asarray(where == min(numbers, key=rank, default=-1))

    def _kept_out(self, pod_class: PodClass, allowed: BoolArray, key: str) -> bool:
        """Whether pods dealt to the place keep the class out of it, or it them."""
        place = self._table.only_place(allowed, key)
        rules = SharedRules(self._sim, pod_class, (key,), self._tallies)
        return place is not None and rules.kept_apart((place,))


class _Caps:
    """Hostname rules as caps: at most so many pods of a group on one new node.

    A new node starts empty and other new nodes may stay without pods of the group, so a spread
    by hostname allows maxSkew of them and an anti-affinity one. Only classes that obey a rule and
    count for it are capped; where others count for it too, `CrossingRules` has the whole rule.
    """

    def __init__(self, sim: Simulation, classes: Sequence[PodClass]) -> None:
        self._limits: dict[int, int] = {}
        self._users: dict[int, set[int]] = {}
        for pod_class in classes:
            links = sim.links(pod_class)
            for counter, itself in links.anti:
                if itself:
                    self._note(id(counter), counter.topology.key, pod_class, 1)
            for rule in links.spread:
                if rule.counts_itself:
                    self._note(
                        id(rule.counter), rule.counter.topology.key, pod_class, rule.max_skew
                    )
        self._numbers = {counter: i for i, counter in enumerate(self._limits)}
        self.values = tuple(self._limits.values())

    def _note(self, counter: int, key: str, pod_class: PodClass, limit: int) -> None:
        if key == HOSTNAME:
            self._limits[counter] = min(limit, self._limits.get(counter, limit))
            self._users.setdefault(counter, set()).add(pod_class.number)

    def groups_of(self, pod_class: PodClass) -> tuple[int, ...]:
        """The caps that apply to the class."""
        return tuple(
            self._numbers[counter]
            for counter, users in self._users.items()
            if pod_class.number in users
        )
