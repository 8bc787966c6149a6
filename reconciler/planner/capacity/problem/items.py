"""From waiting classes to items: which offers each may use, and in which topology domain.

Rules on domains that nodes share (zones) are settled here, before packing: pods are dealt out to
places, and an item is the part of a class that goes to one place. Rules per hostname become caps
per node.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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

Want = tuple[PodClass, int]
"""A class and how many of its pods still wait."""


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
    tallies: Tallies = {}
    items: list[Item] = []
    singly: list[Want] = []
    for pod_class, count in wants:
        if _goes_singly(sim, pod_class, table):
            singly.append((pod_class, count))
            continue
        groups, rules = caps.groups_of(pod_class), crossing.of(pod_class)
        fit = table.fit(pod_class)
        for amount, allowed in _parts(sim, pod_class, count, table, tallies):
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


def _parts(
    sim: Simulation, pod_class: PodClass, count: int, table: OfferTable, tallies: Tallies
) -> list[tuple[int, BoolArray]]:
    """Return pods and offers per place; one part when nothing depends on the place."""
    keys = shared_keys(sim.links(pod_class))
    feasible = table.feasible(pod_class)
    if not feasible.any():
        return []
    if not keys:
        return [(count, feasible)]
    found = table.places(pod_class, keys)
    rules = SharedRules(sim, pod_class, keys, tallies)
    if rules.together:
        # All go to one place: the first that has room for them all, else for the most of them.
        nodes = np.array([min(count, offer.most) for offer in table.offers])
        room = np.minimum(table.slots(pod_class), count) * nodes
        found = sorted(found, key=lambda each: -min(count, int(room[each[1]].sum())))
    places = [place for place, _ in found]
    rules.open_domains(places)
    amounts = assign(rules, places, [UNLIMITED] * len(places), count)
    return [
        (amount, allowed) for amount, (_, allowed) in zip(amounts, found, strict=True) if amount
    ]


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
