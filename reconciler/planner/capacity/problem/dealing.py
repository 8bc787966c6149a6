"""Which places the pods of each class go to, by the rules on shared domains such as zones.

Pods that must be near others are dealt out after those; groups go to where most of them have room.
"""

from collections.abc import Sequence

import numpy as np

from reconciler.planner.capacity.problem.groups_near import GroupNear, groups_near
from reconciler.planner.capacity.problem.kept_apart import UndealtClasses
from reconciler.planner.capacity.problem.limited_room import LimitedRoom
from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.placement.arrays import UNLIMITED, BoolArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.domains import (
    Coordinates,
    SharedRules,
    Tallies,
    assign,
    shared_keys,
)
from reconciler.planner.placement.simulation import Simulation

WAVES_MAX = 16
"""How many links of pods near others that are near others are followed before packing."""

Part = tuple[int, BoolArray]
"""How many pods of a class go to one place, and the offers that take them there."""


class Dealing:
    """Deals classes out to places; those that must be near others come after these."""

    def __init__(self, sim: Simulation, wants: Sequence[Want], table: OfferTable) -> None:
        self._sim = sim
        self._wants = wants
        self._table = table
        self._tallies: Tallies = {}
        classes = [pod_class for pod_class, _ in wants]
        self._keys = {key for each in classes for key in shared_keys(sim.links(each))}
        self._groups = groups_near(sim, classes)
        self._others = UndealtClasses(sim, classes, table)
        self._number_of = {each.number: at for at, each in enumerate(classes)}
        self._chosen: dict[int, BoolArray] = {}
        """By the class numbers of a group, the offers of the group's place."""
        self._room = LimitedRoom(sim, table.offers, sum(count for _, count in wants))
        self._parts: list[list[Part]] = [[] for _ in wants]

    def parts(self) -> Sequence[Sequence[Part]]:
        """Return the parts of each class; one part if its place does not matter."""
        asked = sorted(range(len(self._wants)), key=self._turn)
        for _ in range(WAVES_MAX):
            later = [number for number in asked if not self._deal(number)]
            if not later or len(later) == len(asked):
                break
            asked = later
        return self._parts

    def _turn(self, number: int) -> tuple[int, int]:
        """Return the sort key of dealing: by priority, and then those with the least choice first.

        Classes that must be near others come last, the ones that they follow before them.
        """
        pod_class, _ = self._wants[number]
        links = self._sim.links(pod_class)
        turn = 3 if links.affinity else 2
        if not links.affinity and pod_class.number not in self._groups:
            keys = shared_keys(links)
            turn = int(bool(keys) and len(self._table.places(pod_class, keys)) > 1)
        return -pod_class.spec.priority, turn

    def _deal(self, number: int) -> bool:
        """Deal one class out; return False while it must be near pods that have no place yet."""
        pod_class, count = self._wants[number]
        links, feasible = self._sim.links(pod_class), self._table.feasible(pod_class)
        if not feasible.any():
            return True
        keys = shared_keys(links)
        if keys and self._others.may_go_anywhere(pod_class):
            feasible, keys = self._kept_to(pod_class, feasible, keys), ()
            parts = [(count, feasible)] if feasible.any() else []
        elif keys:
            parts = self._by_rules(pod_class, count, keys)
        else:
            parts = self._without_rules(pod_class, count, feasible)
        for amount, allowed in parts:
            self._note(pod_class, amount, allowed, keys)
        self._parts[number] = parts
        self._others.dealt(pod_class)
        return bool(parts) or not links.affinity or links.affinity_itself

    def _note(
        self, pod_class: PodClass, count: int, allowed: BoolArray, keys: tuple[str, ...]
    ) -> None:
        """Count the pods whose place is certain, and take the room that they need there."""
        if not self._keys:
            return
        fed = {counter.topology.key for counter in self._sim.feeds(pod_class)}
        for key in sorted((fed & self._keys).difference(keys)):
            place = self._table.only_place(allowed, key)
            if place is not None:
                SharedRules(self._sim, pod_class, (key,), self._tallies).take((place,), count)
        if self._room and (
            keys or any(self._table.only_place(allowed, key) is not None for key in self._keys)
        ):
            self._room.take(pod_class, count, allowed)

    def _without_rules(self, pod_class: PodClass, count: int, feasible: BoolArray) -> list[Part]:
        """Return the parts of a class without rules on places.

        Pods that others must be near go to the place of their group as far as there is room.
        """
        inside = self._chosen_for(pod_class)
        if inside is None or not (feasible & inside).any():
            return [(count, feasible)]
        there = self._room.copy().take(pod_class, count, feasible & inside)
        parts = [(there, feasible & inside), (count - there, feasible)]
        return [(amount, allowed) for amount, allowed in parts if amount]

    def _kept_to(
        self, pod_class: PodClass, feasible: BoolArray, keys: tuple[str, ...]
    ) -> BoolArray:
        """Return the offers without those in places from which others' pods keep the class out."""
        rules = SharedRules(self._sim, pod_class, keys, self._tallies)
        for place, allowed in self._table.places(pod_class, keys):
            if rules.kept_apart(place):
                feasible = feasible & ~allowed
        return feasible

    def _by_rules(self, pod_class: PodClass, count: int, keys: tuple[str, ...]) -> list[Part]:
        rules = SharedRules(self._sim, pod_class, keys, self._tallies)
        # If nothing else decides, all go to one place, which leaves others to pods that must be
        # apart.
        found = self._in_order(pod_class, count, keys, together=rules.at_once)
        places = [place for place, _ in found]
        rules.open_domains(places)
        amounts = [0] * len(places)
        if self._room and not rules.together:
            room = [self._room.copy().take(pod_class, count, allowed) for _, allowed in found]
            amounts = assign(rules, places, room, count)
        # Pods without room by this estimate are dealt as well: the packing knows better.
        more = assign(rules, places, [UNLIMITED] * len(places), count - sum(amounts))
        amounts = [one + other for one, other in zip(amounts, more, strict=True)]
        return [
            (amount, allowed) for amount, (_, allowed) in zip(amounts, found, strict=True) if amount
        ]

    def _in_order(
        self, pod_class: PodClass, count: int, keys: tuple[str, ...], *, together: bool
    ) -> list[tuple[Coordinates, BoolArray]]:
        """Return the places of a class, the preferred ones first.

        The place of its group comes first. Pods that must be together prefer the place with room
        for most of them, others the place where the next node is cheapest.
        """
        found = self._table.places(pod_class, keys)
        inside = self._chosen_for(pod_class)
        lost = {at: self._others.lost(pod_class, keys, at, self._tallies) for at, _ in found}
        if not self._room and inside is None and not any(places for _, places in lost.values()):
            return found

        def rank(each: tuple[Coordinates, BoolArray]) -> tuple[int, ...]:
            allowed, chosen = each[1], inside is None or bool((each[1] & inside).any())
            classes, places = lost[each[0]]
            if not self._room:
                price = int(self._table.prices[allowed].min())
            elif together:
                price = -self._room.copy().take(pod_class, count, allowed)
            else:
                cheapest = self._room.cheapest(pod_class, allowed)
                price = UNLIMITED**2 if cheapest is None else cheapest
            return not chosen, classes, price, places

        return sorted(found, key=rank)

    def _chosen_for(self, pod_class: PodClass) -> BoolArray | None:
        """Return the offers of the place to which the class's group goes; None without a group."""
        group = self._groups.get(pod_class.number)
        if group is None:
            return None
        if pod_class.number not in self._chosen:
            inside = self._place_for(group)
            members = (*group.followers, *group.leaders)
            self._chosen.update((member.number, inside) for member in members)
        return self._chosen[pod_class.number]

    def _place_for(self, group: GroupNear) -> BoolArray:
        """Return the offers of the place with room for most of a group's pods.

        Places where all pods that others must be near can start come before all others.
        """
        members = {each.number for each in (*group.followers, *group.leaders)}
        wants = [self._wants[at] for at in sorted(self._number_of[member] for member in members)]
        leaders = {leader.number for leader in group.leaders}
        where = self._table.places_of((group.key,))
        open_to = [self._table.places(follower, (group.key,)) for follower in group.followers]
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
        """Return whether anti-affinity with pods dealt to the place excludes the class."""
        links = self._sim.links(pod_class)
        apart = [*links.held_against, *(counter for counter, _ in links.anti)]
        if all(counter.topology.key != key for counter in apart):
            return False
        place = self._table.only_place(allowed, key)
        rules = SharedRules(self._sim, pod_class, (key,), self._tallies)
        return place is not None and rules.kept_apart((place,))
