"""Bundles: pods that must share a node with others are bought for together with those.

Bulk packing places the others without regard to who must follow. If followers then find no room,
one pod that they must be near and all of them get a node that is chosen for all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
"""How many kinds of pods without a node are examined at once; see `CHAIN_MAX`."""
NODES_MAX = 200
"""How many nodes one purchase buys in this way."""
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


def merged(bundles: Sequence[Bundle], more: Sequence[Bundle]) -> list[Bundle]:
    """Return the bundles, those with the same first class joined."""
    found: dict[int, dict[int, Want]] = {}
    for bundle in (*bundles, *more):
        members = found.setdefault(bundle.wants[0][0].number, {})
        members.update({pod_class.number: (pod_class, n) for pod_class, n in bundle.wants})
    return [Bundle(wants=tuple(members.values())) for members in found.values()]


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
        numbers = [{c.number for c in pod_classes} for pod_classes in others]
        near_all = (
            c for c in first if c not in chain and all(c.number in number for number in numbers)
        )
        leader = next(near_all, None)
        if leader is None:
            break
        chain.insert(0, leader)
    return chain


def _amounts(placed: Sequence[Sequence[tuple[int, int]]]) -> tuple[int, ...]:
    """Return how many pods of each class were placed."""
    return tuple(sum(amount for _, amount in pairs) for pairs in placed)


class _Bought(NamedTuple):
    """A node that was bought for a bundle."""

    offer: int
    """Its number in the table."""
    taken: tuple[int, ...]
    """How many pods of each class it takes."""


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
            alike: _Bought | None = None
            while len(self.purchase.rows) < NODES_MAX:
                alike = self._buy_one(bundle, alike)
                if alike is None:
                    break

    def withheld(self, bundles: Sequence[Bundle]) -> frozenset[int]:
        """Return the numbers of classes that wait for the next plan, as the limit was reached.

        Without their followers the first pods of a bundle would get nodes that are too small.
        """
        if len(self.purchase.rows) < NODES_MAX:
            return frozenset()
        return frozenset(
            pod_class.number
            for bundle in bundles
            if any(self._left[follower.number] for follower, _ in bundle.wants[1:])
            for pod_class, _ in bundle.wants
        )

    def _buy_one(self, bundle: Bundle, alike: "_Bought | None") -> "_Bought | None":
        """Buy one node; return what was bought, or None if nothing was.

        Args:
            bundle: The pods.
            alike: The node that was bought before for the same bundle: if another one takes as much
                no other offer is tried.
        """
        wants = [(c, min(n, self._left[c.number])) for c, n in bundle.wants]
        first, followers = wants[0], wants[1:]
        if not first[1] or not any(count for _, count in followers):
            return None
        index = None if alike is None else self._repeated(alike, wants)
        index = self._best(wants) if index is None else index
        if index is None:
            return None
        row = self._sim.rows
        placed = self._try(index, wants)
        for (pod_class, _), pairs in zip(wants, placed, strict=True):
            self._note(pod_class, pairs)
        offer = self._table.offers[index]
        node = offer.node
        self.purchase.rows.append((row, node))
        if not self._holds(index, wants):
            self.purchase.lowered[row] = holding(offer, wants).over_subscription
        self._may_buy[index] -= 1
        self._limits = self._limits.less(node.nano_usd_per_hour, 1)
        return _Bought(index, _amounts(placed))

    def _repeated(self, alike: "_Bought", wants: Sequence[Want]) -> int | None:
        """Return the offer of the node before if another one takes as much; None otherwise."""
        enough = all(count >= taken for (_, count), taken in zip(wants, alike.taken, strict=True))
        if not (enough and self._may_buy_of(alike.offer)):
            return None
        mark = self._sim.fork()
        taken = _amounts(self._try(alike.offer, wants))
        self._sim.revert(mark)
        return alike.offer if taken == alike.taken else None

    def _may_buy_of(self, index: int) -> bool:
        price = self._table.offers[index].node.nano_usd_per_hour
        return self._may_buy[index] > 0 and self._limits.allows(price)

    def _best(self, wants: Sequence[Want]) -> int | None:
        """Return the offer whose node takes most of the pods; None if it takes no follower."""
        best: tuple[int, bool, int, int] | None = None
        for index in self._in_order(wants)[:TRIES_MAX]:
            mark = self._sim.fork()
            placed = self._try(index, wants)
            self._sim.revert(mark)
            price = self._table.offers[index].node.compared_nano_usd
            rank = (-sum(_amounts(placed)), not self._holds(index, wants), price, index)
            if any(placed[1:]) and (best is None or rank < best):
                best = rank
        return None if best is None else best[-1]

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
            (index for index in numbers if self._may_buy_of(index)),
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
