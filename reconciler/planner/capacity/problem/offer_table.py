"""The offers of a purchase as the filters see them, and their places."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.problem.problem import Offer
from reconciler.planner.placement.arrays import UNLIMITED, BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.domains import Coordinates
from reconciler.planner.placement.filters import resources
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.placement.topology import Counter

Want = tuple[PodClass, int]
"""A class and how many of its pods are pending."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """How empty nodes of the offers fit some pods.

    One object for all classes that are alike to them.
    """

    slots: IntArray
    """(offers,) how many pods an empty node takes, by static filters and size."""
    feasible: BoolArray
    """(offers,) whether it takes a pod and may be bought."""
    places: dict[tuple[str, ...], list[tuple[Coordinates, BoolArray]]]
    """By topology keys: the places with feasible offers, the cheapest first, and their offers.

    Filled when first asked for.
    """


class OfferTable:
    """The offers as the filters see them; answers are kept for equal classes."""

    def __init__(self, sim: Simulation, offers: Sequence[Offer]) -> None:
        self._sim = sim
        self.offers = tuple(offers)
        kinds = [sim.node_kind_of(offer.node.row) for offer in offers]
        self._kinds, self._kind_at = np.unique(np.array(kinds, dtype=np.int64), return_inverse=True)
        width = len(sim.dimensions.names)
        self.vectors = np.array([o.vector for o in offers], dtype=np.int64).reshape(-1, width)
        self.over = np.array([o.over_subscription for o in offers], dtype=np.int64)
        self.prices = np.array([o.compared_nano_usd for o in offers], dtype=np.int64)
        self.penalised = any(offer.penalty_nano_usd for offer in offers)
        self.buyable = np.array([o.most > 0 for o in offers], dtype=np.bool_)
        self._allowed: dict[int, BoolArray] = {}
        self._fits: dict[tuple[int, bytes, bytes], Fit] = {}
        self._kept_off: dict[int, BoolArray | None] = {}
        self._daemons: list[frozenset[int]] = []
        self._places: dict[tuple[str, ...], tuple[list[Coordinates], IntArray]] = {}

    def fit(self, pod_class: PodClass) -> Fit:
        """Return how the offers fit the class, without rules between pending pods."""
        kept_off = self._kept_off_by_daemons(pod_class)
        mask = b"" if kept_off is None else kept_off.tobytes()
        key = (pod_class.static, pod_class.requests.tobytes(), mask)
        known = self._fits.get(key)
        if known is None:
            slots = self._slots(pod_class, self.over)
            known = Fit(slots=slots, feasible=(slots > 0) & self.buyable, places={})
            self._fits[key] = known
        return known

    def _slots(self, pod_class: PodClass, over: IntArray) -> IntArray:
        admitting = self._admitting(pod_class)
        if not np.count_nonzero(admitting):
            return np.zeros(len(admitting), dtype=np.int64)
        room = resources.room(
            self.vectors, self.vectors, over, pod_class.requests, pod_class.columns
        )
        return np.where(admitting, np.minimum(room, UNLIMITED), 0)

    def slots(self, pod_class: PodClass) -> IntArray:
        """Return (offers,) how many pods an empty node takes, by static filters and size."""
        return self.fit(pod_class).slots

    def slots_uninflated(self, pod_class: PodClass) -> IntArray:
        """Return (offers,) the same without over-subscription."""
        return self._slots(pod_class, np.zeros_like(self.over))

    def feasible(self, pod_class: PodClass) -> BoolArray:
        """Return (offers,) whether it takes the class and may be bought."""
        return self.fit(pod_class).feasible

    def _admitting(self, pod_class: PodClass) -> BoolArray:
        known = self._allowed.get(pod_class.static)
        if known is None:
            allowed = [not self._sim.refusal(pod_class, int(k)) for k in self._kinds]
            known = np.array(allowed, dtype=np.bool_)[self._kind_at]
            self._allowed[pod_class.static] = known
        kept_off = self._kept_off_by_daemons(pod_class)
        return known if kept_off is None else known & ~kept_off

    def _kept_off_by_daemons(self, pod_class: PodClass) -> BoolArray | None:
        """Return (offers,) whether anti-affinity excludes the class from the offer's daemons.

        None if it excludes it from none.
        """
        if not self._sim.table.daemons:
            return None
        if pod_class.number not in self._kept_off:
            links = self._sim.links(pod_class)
            apart = [c for c in (*(c for c, _ in links.anti), *links.held_against) if c.daemons]
            found = [self._has_one_of(apart, at) for at in range(len(self.offers))] if apart else []
            kept_off = np.array(found, dtype=np.bool_) if any(found) else None
            self._kept_off[pod_class.number] = kept_off
        return self._kept_off[pod_class.number]

    def _has_one_of(self, counters: Sequence[Counter], at: int) -> bool:
        """Return whether a node of the offer has a domain in which a counter counts its daemons."""
        daemons, variants = self._daemons_of_offers()[at], self.offers[at].node.row.variants
        return any(
            (c.topology.key == HOSTNAME or c.topology.place_of(variants) != -1)
            and not c.daemons.isdisjoint(daemons)
            for c in counters
        )

    def daemon_rules(self, pod_class: PodClass) -> Sequence[frozenset[int]]:
        """Return (offers,) the rules that the class obeys and that count the offer's daemons.

        Rules are given by the `id` of their counters.
        """
        links = self._sim.links(pod_class)
        counters = [] if links.plain else [c for c in links.obeyed() if c.daemons]
        if not counters:
            return [frozenset()] * len(self.offers)
        known: dict[frozenset[int], frozenset[int]] = {}
        for daemons in self._daemons_of_offers():
            if daemons not in known:
                counting = (id(c) for c in counters if not c.daemons.isdisjoint(daemons))
                known[daemons] = frozenset(counting)
        return [known[daemons] for daemons in self._daemons_of_offers()]

    def _daemons_of_offers(self) -> Sequence[frozenset[int]]:
        """Return (offers,) the class numbers of the daemons' pods that the nodes come with."""
        if not self._daemons:
            of_daemon = self._sim.table.of_daemon
            self._daemons = [
                frozenset(of_daemon(pod).number for pod in offer.node.row.daemons)
                for offer in self.offers
            ]
        return self._daemons

    def places(
        self, pod_class: PodClass, keys: tuple[str, ...]
    ) -> list[tuple[Coordinates, BoolArray]]:
        """Return where the class may go, with the offers there; the cheapest place first."""
        fit = self.fit(pod_class)
        if keys not in fit.places:
            fit.places[keys] = self._feasible_places(fit.feasible, keys)
        return fit.places[keys]

    def places_of(self, keys: tuple[str, ...]) -> IntArray:
        """Return (offers,) numbers, equal for offers in the same place by these keys."""
        return self._all_places(keys)[1]

    def only_place(self, allowed: BoolArray, key: str) -> int | None:
        """Return the place by this key that all the offers are in; None if there are several."""
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
        """Return the distinct places of the offers for these keys, and the place of each offer."""
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
        """Return the values of the keys' labels there, or what they may be; none without the label.

        Places are sorted by them, as their numbers change with the existing nodes.
        """
        found = []
        for key, domain in zip(keys, place, strict=True):
            topology = self._sim.topologies[key]
            domains = topology.choices[-2 - domain] if domain < -1 else (domain,)
            found.append([topology.values[d] for d in domains if d >= 0])
        return found
