"""Buys node by node for pods that bulk packing left: rare rules, and what limits leave."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from reconciler.model.ids import FleetKey
from reconciler.planner.capacity.balancing import prices_among_similar
from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.problem import (
    Offer,
)
from reconciler.planner.capacity.problem.purchase import (
    PlacedPods,
    Purchase,
    PurchaseLimits,
    holding,
    priced_row,
)
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.domains import shared_keys
from reconciler.planner.placement.fill import fill, tightness, without_torn
from reconciler.planner.placement.kinds import HOSTNAME, ZONE, ZONE_KEYS
from reconciler.planner.placement.simulation import DEMAND, ZONE_ASSUMED, Simulation, Terms

CHAIN_MAX = 16
"""How many links one plan follows of pods that must be near others that must be near others; the
next plans follow the rest. One tenant's chain must not take the time of all."""


class NodeByNodePurchase:
    """Serves node by node what bulk packing left: rare rules, and what limits leave."""

    def __init__(
        self, sim: Simulation, table: OfferTable, purchase: Purchase, limits: PurchaseLimits
    ) -> None:
        self._sim = sim
        self._table = table
        self._purchase = purchase
        self._limits = limits
        bought: dict[FleetKey, int] = {}
        for _, node in purchase.rows:
            bought[node.key] = bought.get(node.key, 0) + 1
        self._left = [o.most - bought.get(o.node.key, 0) for o in table.offers]
        self._prices = prices_among_similar(table.offers)
        self._sizes = [
            o.balanced.size + bought.get(o.node.key, 0) if o.balanced else 0 for o in table.offers
        ]

    def serve(self, wants: Sequence[Want]) -> None:
        """Place each class as far as rows, limits and money allow; the rest stays.

        Pods that must be near those of a class after theirs are tried again.
        """
        left = [count for _, count in wants]
        asked = list(range(len(wants)))
        for _ in range(CHAIN_MAX):
            before = sum(left)
            for number in asked:
                left[number] = self._serve(wants[number][0], left[number])
            asked = [n for n in asked if left[n] and self._sim.links(wants[n][0]).follows_others]
            if not asked or sum(left) == before:
                break
        for number, (pod_class, _) in enumerate(wants):
            left[number] -= self._buy_for_zone(pod_class, left[number])
            if left[number]:
                self._purchase.left.append((pod_class, left[number]))

    def _serve(self, pod_class: PodClass, count: int) -> int:
        """Place as many pods as rules and limits allow; return how many are left."""
        links = self._sim.links(pod_class)
        if links.fits_nowhere or links.lacks_neighbour:
            return count
        left = self._on_bought(pod_class, count, partial(self._most_on_another, pod_class))
        while left > 0:
            placed = self._on_another(pod_class, left)
            if not placed:
                break
            left -= placed
        return self._on_bought(pod_class, left) if left == count else left

    def _most_on_another(self, pod_class: PodClass) -> int:
        """Return how many pods of the class the largest node takes that may still be bought."""
        slots = self._table.slots_uninflated(pod_class)
        slots = np.where(np.array(self._left) > 0, slots, 0)
        return int(slots.max(initial=0))

    def _buy_for_zone(self, pod_class: PodClass, left: int) -> int:
        """Buy one more node, which EC2 may start in the needed zone.

        The pods wait for the node; if it starts in another zone, the next one is bought, as often
        as `scale_up.progress` allows. Pods that must be in the zone of others' pods need a fleet
        with that zone.

        Returns:
            How many pods it takes.
        """
        links = self._sim.links(pod_class)
        if not left or links.follows_others:
            return 0
        if not any(c.topology.key in ZONE_KEYS for c in links.obeyed()):
            return 0
        return self._on_another(pod_class, left, ZONE_ASSUMED)

    def _on_bought(
        self, pod_class: PodClass, count: int, elsewhere: Callable[[], int] = int
    ) -> int:
        """Use room on nodes bought already; return how many pods are left.

        A group that must share a node is placed only if as many of it fit as would `elsewhere`.
        """
        among = np.zeros(self._sim.rows, dtype=np.bool_)
        among[[row for row, _ in self._purchase.rows]] = True
        among = without_torn(self._sim, pod_class, count, among, elsewhere)
        if not among.any():
            return count
        taken = fill(self._sim, pod_class, count, among, tightness(self._sim))
        return count - self._note(pod_class, taken)

    def _note(self, pod_class: PodClass, taken: list[tuple[int, int]]) -> int:
        """Record pods that found rows; return how many."""
        pairs = np.array(taken, dtype=np.int64).reshape(-1, 2)
        rows, amounts = pairs[:, 0], pairs[:, 1]
        self._purchase.taken.append(PlacedPods(pod_class=pod_class, rows=rows, amounts=amounts))
        return int(amounts.sum())

    def _on_another(self, pod_class: PodClass, count: int, terms: Terms = DEMAND) -> int:
        """Buy the cheapest node that the rules accept; return how many pods it takes."""
        prices = [o.node.nano_usd_per_hour for o in self._table.offers]
        where = self._table.places_of(shared_keys(self._sim.links(pod_class))).tolist()
        places = list(zip(where, self._table.daemon_rules(pod_class), strict=True))
        refused: set[tuple[int, frozenset[int]]] = set()
        uninflated = self._uninflated(pod_class, count)
        for index in self._in_order(pod_class, count, uninflated):
            # An empty node that is large enough is refused only by rules, which read its place and
            # count its daemons.
            if self._left[index] <= 0 or places[index] in refused:
                continue
            if terms.zone_assumed and not self._has_zones(index):
                continue
            if not self._limits.allows(prices[index]):
                self._purchase.over_limits = True
                continue
            offer = self._table.offers[index]
            if uninflated is not None:
                offer = holding(offer, [(pod_class, min(count, int(uninflated[index])))])
            placed = self._try(pod_class, offer, count, terms)
            if placed:
                if offer is not self._table.offers[index]:
                    row, _ = self._purchase.rows[-1]
                    self._purchase.lowered[row] = offer.over_subscription
                self._left[index] -= 1
                self._sizes[index] += self._table.offers[index].balanced is not None
                self._limits = self._limits.less(prices[index], 1)
                return placed
            if not pod_class.volumes.shared:
                refused.add(places[index])
        return 0

    def _uninflated(self, pod_class: PodClass, count: int) -> IntArray | None:
        """Return (offers,) how many pods a node takes, by their requests where these decide.

        They decide for pods of which the first one determines the node of all. Those that share a
        zone also go to other nodes there: by their requests they go to a node that takes all of
        them, and whose zone would have to be known before others could follow.

        Returns:
            None if requests alone decide nowhere.
        """
        links = self._sim.links(pod_class)
        if count < 2 or links.spread or not links.affinity_itself:
            return None
        if any(counter.total for counter in links.affinity):
            return None
        slots = self._table.slots_uninflated(pod_class)
        if links.shares_node:
            return slots
        if links.near_daemons:
            return None
        takes_all = self._first_decides(pod_class) & (slots >= count) & (np.array(self._left) > 0)
        return np.where(takes_all, slots, self._table.slots(pod_class)) if takes_all.any() else None

    def _first_decides(self, pod_class: PodClass) -> BoolArray:
        """Return (offers,) whether the first node of the class's group decides for all its pods.

        It does where they must share a node, or a place that is known only once it is there.
        """
        keys = tuple(sorted({c.topology.key for c in self._sim.links(pod_class).affinity}))
        found = np.zeros(len(self._left), dtype=np.bool_)
        for place, allowed in self._table.places(pod_class, keys):
            if HOSTNAME in keys or min(place) < -1:
                found |= allowed
        return found

    def _in_order(self, pod_class: PodClass, count: int, uninflated: IntArray | None) -> list[int]:
        """Return the offers that take the class, those to be tried first before the others.

        The first node of pods that must be near each other decides for all of them: where it is
        the only one, or its zone is not known yet, one that takes them all comes first, then the
        one that takes most; where it is the only one by their requests alone (`uninflated`), if
        need be. Elsewhere as many as are needed follow into its zone.
        """
        numbers: list[int] = self._table.feasible(pod_class).nonzero()[0].tolist()
        prices = [o.compared_nano_usd for o in self._table.offers]
        links = self._sim.links(pod_class)
        begun = links.near_daemons or any(counter.total for counter in links.affinity)
        if not links.affinity or begun or count < 2:
            return sorted(numbers, key=lambda i: (self._prices[i], self._sizes[i], i))
        slots = self._table.slots(pod_class)
        by_requests = slots if uninflated is None else uninflated
        decides = self._first_decides(pod_class)

        def rank(index: int) -> tuple[int, bool, int, int, int]:
            taken, price = min(count, int(slots[index])), prices[index]
            if decides[index]:
                most = min(count, int(by_requests[index]))
                return count - most, taken < count, price, price, index
            nodes = -(-count // max(1, taken))
            return int(nodes > self._left[index]), False, nodes * price, price, index

        return sorted(numbers, key=rank)

    def _has_zones(self, index: int) -> bool:
        """Return whether EC2 chooses among several zones for the offer's nodes."""
        variants = self._table.offers[index].node.row.variants
        return len({labels.get(ZONE, "") for labels in variants}) > 1

    def _try(self, pod_class: PodClass, offer: Offer, count: int, terms: Terms = DEMAND) -> int:
        mark = self._sim.fork()
        row = self._sim.add_row(priced_row(offer))
        among = np.zeros(self._sim.rows, dtype=np.bool_)
        among[row] = True
        taken = fill(self._sim, pod_class, count, among, np.array([row]), terms)
        if not taken:
            self._sim.revert(mark)
            return 0
        self._purchase.rows.append((row, offer.node))
        return self._note(pod_class, taken)
