"""Bundles: pods that must share a node with others are bought for together with those.

Bulk packing places the others without regard to who must follow. If followers then find no room,
one pod that they must be near and all of them get a node that is chosen for all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.one_by_one import CHAIN_MAX
from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.purchase import (
    Purchase,
    PurchaseLimits,
    holding,
    priced_row,
    taken_by_row,
)
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.fill import fill
from reconciler.planner.placement.simulation import Simulation

BUNDLES_MAX = 16
"""How many nodes one plan buys in this way, and how many kinds of pods it examines; see
`CHAIN_MAX`."""
TRIES_MAX = 8
"""How many offers are tried for one node: first those that have enough for all, the cheapest
first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Pods for one node; those that the others must be near come first."""

    wants: tuple[Want, ...]


def stranded(sim: Simulation, wants: Sequence[Want], left: Sequence[Want]) -> list[Bundle]:
    """Return the pods that found no node, each with those whose node it should have shared."""
    asked = {pod_class.number: count for pod_class, count in wants}
    chains: dict[int, list[PodClass]] = {}
    sharing = [c for c, _ in left if c.number in asked and sim.links(c).shares_node]
    counted = _counted(sim, wants) if sharing else {}
    for pod_class in sharing[:BUNDLES_MAX]:
        chain = _leaders(sim, counted, pod_class)
        if len(chain) > 1 and not _must_follow(sim, chain[0]):
            known = chains.setdefault(chain[0].number, [])
            known += [each for each in chain if each not in known]
    bundles = []
    for first, *others in chains.values():
        count = asked[first.number] if sim.links(first).shares_node else 1
        follow = [(each, asked[each.number]) for each in others]
        bundles.append(Bundle(wants=((first, count), *follow)))
    return bundles


def _must_follow(sim: Simulation, pod_class: PodClass) -> bool:
    links = sim.links(pod_class)
    return links.shares_node and links.follows_others


_Counted = dict[int, list[PodClass]]
"""By the `id` of a counter, the classes that it counts."""


def _counted(sim: Simulation, wants: Sequence[Want]) -> _Counted:
    found: _Counted = {}
    for pod_class, _ in wants:
        for counter in sim.feeds(pod_class):
            found.setdefault(id(counter), []).append(pod_class)
    return found


def _leaders(sim: Simulation, counted: _Counted, pod_class: PodClass) -> list[PodClass]:
    """Return the class and those that it must be near, transitively.

    The last of the chain first.
    """
    chain = [pod_class]
    while len(chain) <= CHAIN_MAX and sim.links(chain[0]).shares_node:
        first, *others = [counted.get(id(c), []) for c in sim.links(chain[0]).affinity] or [[]]
        numbers = [{c.number for c in each} for each in others]
        near_all = (
            c for c in first if c not in chain and all(c.number in each for each in numbers)
        )
        leader = next(near_all, None)
        if leader is None:
            break
        chain.insert(0, leader)
    return chain


def _pods(placed: Sequence[Sequence[tuple[int, int]]]) -> int:
    return sum(amount for pairs in placed for _, amount in pairs)


class Bundles:
    """Buys nodes for bundles."""

    def __init__(
        self, sim: Simulation, table: OfferTable, wants: Sequence[Want], limits: PurchaseLimits
    ) -> None:
        self._sim = sim
        self._table = table
        self._limits = limits
        self._left = {pod_class.number: count for pod_class, count in wants}
        self._may_buy = [offer.most for offer in table.offers]
        self.purchase = Purchase(rows=[], taken=[], left=[], over_limits=False)

    def buy(self, bundles: Sequence[Bundle]) -> None:
        """Buy nodes for each bundle while its first class has pods and others follow."""
        for bundle in bundles:
            for _ in range(BUNDLES_MAX - len(self.purchase.rows)):
                if not self._buy_one(bundle):
                    break

    def _buy_one(self, bundle: Bundle) -> bool:
        wants = [(c, min(n, self._left[c.number])) for c, n in bundle.wants]
        first, followers = wants[0], wants[1:]
        if not first[1] or not any(count for _, count in followers):
            return False
        best: tuple[int, bool, int, int] | None = None
        for index in self._in_order(wants)[:TRIES_MAX]:
            mark = self._sim.fork()
            placed = self._try(index, wants)
            self._sim.revert(mark)
            price = self._table.offers[index].node.compared_nano_usd
            rank = (-_pods(placed), not self._holds(index, wants), price, index)
            if any(placed[1:]) and (best is None or rank < best):
                best = rank
        if best is None:
            return False
        index = best[-1]
        row = self._sim.rows
        for (pod_class, _), pairs in zip(wants, self._try(index, wants), strict=True):
            self._note(pod_class, pairs)
        offer = self._table.offers[index]
        node = offer.node
        self.purchase.rows.append((row, node))
        if not self._holds(index, wants):
            self.purchase.lowered[row] = holding(offer, wants).over_subscription
        self._may_buy[index] -= 1
        self._limits = self._limits.less(node.nano_usd_per_hour, 1)
        return True

    def _in_order(self, wants: Sequence[Want]) -> list[int]:
        """Return offers that may be bought for the first class, those that take most pods first."""
        table = self._table
        total = np.add.reduce([pod_class.requests * count for pod_class, count in wants])
        share = np.min(table.vectors / np.maximum(total, 1), axis=1, where=total > 0, initial=1.0)
        taken = np.add.reduce([table.feasible(c) * count for c, count in wants])

        def rank(index: int) -> tuple[int, bool, float, int, int]:
            price = table.offers[index].node.compared_nano_usd
            lacking = share[index] < 1 or not self._holds(index, wants)
            return -int(taken[index]), lacking, -round(float(share[index]), 9), price, index

        numbers = table.feasible(wants[0][0]).nonzero()[0].tolist()
        return sorted(
            (
                index
                for index in numbers
                if self._may_buy[index] > 0
                and self._limits.allows(table.offers[index].node.nano_usd_per_hour)
            ),
            key=rank,
        )

    def _holds(self, index: int, wants: Sequence[Want]) -> bool:
        """Return whether a node of the offer has the CPU and memory for all, as inflated there."""
        offer = self._table.offers[index]
        return holding(offer, wants) is offer

    def _try(self, index: int, wants: Sequence[Want]) -> list[list[tuple[int, int]]]:
        """Put the pods on one new node of the offer; return what found room, by class."""
        row = self._sim.add_row(priced_row(holding(self._table.offers[index], wants)))
        among = np.zeros(self._sim.rows, dtype=np.bool_)
        among[row] = True
        order = np.array([row])
        return [fill(self._sim, c, count, among, order) if count else [] for c, count in wants]

    def _note(self, pod_class: PodClass, pairs: Sequence[tuple[int, int]]) -> None:
        if pairs:
            taken = taken_by_row(pod_class, pairs)
            self.purchase.taken.append(taken)
            self._left[pod_class.number] -= int(taken.amounts.sum())
