"""Fast packings: first fit by decreasing size in bulk, on one preferred offer per item.

Items are taken whole, not pod by pod: each fills what is left on the nodes bought so far, the
tightest first, then buys the nodes that the rest needs. Work is items x nodes, vectorised.
"""

import numpy as np

from reconciler.planner.capacity.problem import Packing, Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray, grown


class Bins:
    """The nodes bought so far, as growing arrays."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.count = 0
        self.left = problem.limits.copy()
        self._offer = np.zeros(0, dtype=np.int64)
        self._room = np.zeros((0, problem.vectors.shape[1]), dtype=np.int64)
        self._held = np.zeros((0, len(problem.caps)), dtype=np.int64)
        self._parts: list[tuple[int, IntArray, IntArray]] = []

    @property
    def offer(self) -> IntArray:
        """Offer of each node."""
        return self._offer[: self.count]

    @property
    def room(self) -> IntArray:
        """What is left on each node."""
        return self._room[: self.count]

    def space(self, item: int) -> IntArray:
        """How many pods of the item each node still takes."""
        problem = self.problem
        columns = problem.items[item].pod_class.columns
        offer, room = self.offer, self.room
        needs = problem.needs[item]
        space = np.where(problem.slots[item][offer] > 0, problem.limits.max(initial=1), 0)
        for column in columns:
            np.minimum(space, room[:, column] // np.maximum(needs[offer, column], 1), out=space)
        for group in problem.items[item].groups:
            np.minimum(space, problem.caps[group] - self._held[: self.count, group], out=space)
        return np.asarray(np.maximum(space, 0))

    def put(self, item: int, nodes: IntArray, amounts: IntArray) -> None:
        """Put pods of the item on nodes, each named once."""
        needs = self.problem.needs[item][self._offer[nodes]]
        self._room[nodes] -= needs * amounts[:, None]
        for group in self.problem.items[item].groups:
            self._held[nodes, group] += amounts
        self._parts.append((item, nodes, amounts))

    def buy(self, offer: int, copies: int) -> IntArray:
        """Add nodes of an offer; their numbers."""
        total = self.count + copies
        self._offer = grown(self._offer, total)
        self._room = grown(self._room, total)
        self._held = grown(self._held, total)
        self._offer[self.count : total] = offer
        self._room[self.count : total] = self.problem.vectors[offer]
        self._held[self.count : total] = 0
        self.left[offer] -= copies
        new = np.arange(self.count, total, dtype=np.int64)
        self.count = total
        return new

    def packing(self) -> Packing:
        """What was bought, nodes without pods left out."""
        amounts = np.zeros((self.count, len(self.problem.items)), dtype=np.int64)
        for item, nodes, parts in self._parts:
            amounts[nodes, item] += parts
        used = amounts.any(axis=1)
        return Packing(bins=self.offer[used].copy(), amounts=amounts[used])


def item_order(problem: Problem, worth: FloatArray) -> list[int]:
    """Capped items first, those that need the most nodes ahead; then by worth, dearest first."""

    def key(i: int) -> tuple[int, float, int]:
        groups = problem.items[i].groups
        spread = 0
        for group in groups:
            members = problem.membership[:, group]
            spread = max(spread, -(-int(problem.counts[members].sum()) // int(problem.caps[group])))
        return (-spread, -float(worth[i]), problem.items[i].pod_class.number)

    return sorted(range(len(problem.items)), key=key)


def best_offers(problem: Problem, weights: FloatArray, preferred: int | None) -> list[IntArray]:
    """Per item, offers in the order in which they are bought for it.

    Uncapped items go where a dollar buys the most worth of resources, larger nodes first among
    equals; capped ones where a pod itself is cheapest.
    """
    prices = np.maximum(problem.prices, 1).astype(np.float64)
    numbers = np.arange(len(prices))
    value = np.round(problem.vectors.astype(np.float64) @ weights / prices, 6)
    by_value = np.lexsort((numbers, -problem.prices, -value))
    by_price = np.lexsort((numbers, problem.prices))
    orders: list[IntArray] = []
    for i, item in enumerate(problem.items):
        slots = problem.slots[i]
        if not item.groups:
            order = by_value[slots[by_value] > 0]
        elif slots.max(initial=0) <= 1:
            order = by_price[slots[by_price] > 0]
        else:
            rate = np.round(prices / np.maximum(slots, 1), 3)
            order = np.lexsort((numbers, problem.prices, rate))
            order = order[slots[order] > 0]
        if preferred is not None and slots[preferred]:
            order = np.concatenate(([preferred], order[order != preferred]))
        orders.append(order)
    return orders


def first_fit(problem: Problem, order: list[int], offers: list[IntArray]) -> Packing:
    """Pack items in this order, buying for each from its offers in order.

    Args:
        problem: What to pack.
        order: Items, first to last.
        offers: Per item the offers to buy from, best first.
    """
    bins = Bins(problem)
    for item in order:
        left = int(problem.counts[item])
        left -= _fill(bins, item, left)
        for offer in offers[item]:
            if left <= 0:
                break
            left -= _buy(bins, item, int(offer), left)
    return bins.packing()


def _fill(bins: Bins, item: int, count: int) -> int:
    """Use what is left on the nodes, the tightest first; how many pods found room."""
    if not bins.count or count <= 0:
        return 0
    space = bins.space(item)
    open_nodes = space.nonzero()[0]
    if not len(open_nodes):
        return 0
    ranked = open_nodes[np.argsort(space[open_nodes], kind="stable")]
    available = np.minimum(space[ranked], count)
    ends = np.cumsum(available)
    amounts = np.clip(count - (ends - available), 0, available)
    used = amounts > 0
    bins.put(item, ranked[used], amounts[used])
    return int(amounts.sum())


def _buy(bins: Bins, item: int, offer: int, count: int) -> int:
    """Buy nodes of the offer for up to `count` pods; how many pods they take."""
    slots = int(bins.problem.slots[item, offer])
    copies = min(-(-count // slots), int(bins.left[offer]))
    if copies <= 0:
        return 0
    nodes = bins.buy(offer, copies)
    amounts = np.full(copies, slots, dtype=np.int64)
    placed = min(count, copies * slots)
    amounts[-1] -= copies * slots - placed
    bins.put(item, nodes, amounts)
    return placed
