"""Fast packings: first fit by decreasing size, in bulk, on one preferred offer per item.

Items are placed whole, not pod by pod: each fills the nodes bought so far, the tightest first, then
buys the nodes that the rest needs. The work is items x nodes that are not full yet, vectorised.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from reconciler.planner.capacity.problem.node_rules import NodeRules
from reconciler.planner.capacity.problem.problem import (
    Packing,
    Problem,
    contents_of,
    merged,
)
from reconciler.planner.placement.arrays import UNLIMITED, FloatArray, IntArray, grown

_CLOSING_STEPS = 8
_WORTH_CLOSING = 0.9
"""Nodes are put away once at least a tenth of them can be, because that copies the others."""


def _rules_of(problem: Problem) -> int:
    """Return the number of rules between items.

    0 if no item counts for any, as they cannot bind.
    """
    rules = [item.rules for item in problem.items]
    if not any(each.counts_for for each in rules):
        return 0
    obeyed = (rule for each in rules for rule, _ in each.obeys)
    return 1 + max(chain(obeyed, *(each.counts_for for each in rules)))


class Bins:
    """The nodes bought so far, as growing arrays.

    Those too full for any remaining item are put away.
    """

    def __init__(
        self, problem: Problem, order: Sequence[int], begun: Packing | None = None
    ) -> None:
        """Start with the nodes of `begun` and their pods; items then come in `order`, each once."""
        self.problem = problem
        self.left = problem.limits.copy()
        self._least = _least_needs(problem, order)
        self._bought: list[IntArray] = []
        self._total = 0
        self._open = 0
        self._number = np.zeros(0, dtype=np.int64)
        self._offer = np.zeros(0, dtype=np.int64)
        self._room = np.zeros((0, problem.vectors.shape[1]), dtype=np.int64)
        enough = 2 if begun is None else 1
        shared = (problem.membership.sum(axis=0) >= enough).nonzero()[0].tolist()
        column = {group: column for column, group in enumerate(shared)}
        self._shared_groups = [
            [(group, column[group]) for group in item.groups if group in column]
            for item in problem.items
        ]
        """Per item the groups that may have pods on a node when the item comes, and their columns.

        For an item alone in its group `slots` is the cap, unless nodes are begun: those may hold
        pods of the same item.
        """
        self._held = np.zeros((0, len(shared)), dtype=np.int64)
        rules = _rules_of(problem)
        self._counted = np.zeros((0, rules), dtype=np.int64)
        """Per open node and rule between items: how many pods count for it,"""
        self._most = np.zeros((0, rules), dtype=np.int64)
        """and how many the pods there allow."""
        self._parts: list[tuple[int, IntArray, IntArray]] = []
        self._begun = contents_of(np.zeros((0, len(problem.items)), dtype=np.int64))
        if begun is not None:
            self._begin_with(begun)

    @property
    def count(self) -> int:
        """Return how many nodes are open; their indices begin at 0."""
        return self._open

    def space(self, item: int) -> IntArray:
        """Return how many more pods of the item each open node takes."""
        problem, count = self.problem, self._open
        offer, room = self._offer[:count], self._room[:count]
        slots = problem.slots[item]
        space = slots[offer]
        for column in problem.items[item].pod_class.columns:
            need = problem.needs[item, :, column]
            per_node = np.maximum(need, 1)[offer] if problem.inflated else need[0]
            np.minimum(space, room[:, column] // per_node, out=space)
        for group, column in self._shared_groups[item]:
            np.minimum(space, problem.caps[group] - self._held[:count, column], out=space)
        if self._counted.shape[1]:
            self._limit_by_rules(problem.items[item].rules, space)
        return np.asarray(np.maximum(space, 0, out=space))

    def _limit_by_rules(self, rules: NodeRules, space: IntArray) -> None:
        count = self._open
        for rule, most in rules.obeys:
            counted = self._counted[:count, rule]
            if rule in rules.counts_for:
                np.minimum(space, most - counted, out=space)
            else:
                space[counted > most] = 0
        for rule in rules.counts_for:
            np.minimum(space, self._most[:count, rule] - self._counted[:count, rule], out=space)

    def put(self, item: int, nodes: IntArray, amounts: IntArray) -> None:
        """Put pods of the item on open nodes; each node occurs once."""
        needs = self.problem.needs[item][self._offer[nodes]]
        self._room[nodes] -= needs * amounts[:, None]
        self._note_rules(item, nodes, amounts)
        self._parts.append((item, self._number[nodes], amounts))

    def _note_rules(self, item: int, nodes: IntArray, amounts: IntArray) -> None:
        for _, column in self._shared_groups[item]:
            self._held[nodes, column] += amounts
        if not self._counted.shape[1]:
            return
        rules = self.problem.items[item].rules
        for rule, most in rules.obeys:
            self._most[nodes, rule] = np.minimum(self._most[nodes, rule], most)
        for rule in rules.counts_for:
            self._counted[nodes, rule] += amounts

    def _begin_with(self, packing: Packing) -> None:
        """Buy the nodes of a packing, with their pods, before any others."""
        runs = np.append(np.flatnonzero(np.diff(packing.bins, prepend=-1)), len(packing.bins))
        for begin, end in zip(runs.tolist(), runs[1:].tolist(), strict=False):
            self.buy(int(packing.bins[begin]), end - begin)
        held = packing.contents
        taken = self.problem.needs[held.items, packing.bins[held.nodes]] * held.pods[:, None]
        np.subtract.at(self._room, held.nodes, taken)
        for item in np.unique(held.items).tolist():
            rules, groups = self.problem.items[item].rules, self._shared_groups[item]
            if not (groups or rules.obeys or rules.counts_for):
                continue
            of_item = held.items == item
            self._note_rules(item, held.nodes[of_item], held.pods[of_item])
        self._begun = held

    def buy(self, offer: int, copies: int) -> IntArray:
        """Add nodes of an offer; return their indices among the open ones."""
        open_now = self._open + copies
        self._offer = grown(self._offer, open_now)
        self._number = grown(self._number, open_now)
        self._room = grown(self._room, open_now)
        self._held = grown(self._held, open_now)
        if self._counted.shape[1]:
            self._counted = grown(self._counted, open_now)
            self._most = grown(self._most, open_now)
            self._counted[self._open : open_now] = 0
            self._most[self._open : open_now] = UNLIMITED
        new = np.arange(self._open, open_now, dtype=np.int64)
        self._offer[new] = offer
        self._number[new] = np.arange(self._total, self._total + copies)
        self._room[new] = self.problem.vectors[offer]
        self._held[new] = 0
        self.left[offer] -= copies
        self._bought.append(np.full(copies, offer, dtype=np.int64))
        self._total += copies
        self._open = open_now
        return new

    def put_away(self, step: int) -> None:
        """Close the nodes that take none of the items from this step of the order on."""
        count = self._open
        stay = (self._room[:count] >= self._least[step]).all(axis=1).nonzero()[0]
        if len(stay) > count * _WORTH_CLOSING:
            return
        kept = [self._offer, self._number, self._room, self._held]
        kept += [self._counted, self._most] if self._counted.shape[1] else []
        for array in kept:
            array[: len(stay)] = array[stay]
        self._open = len(stay)

    def packing(self) -> Packing:
        """Return the packing so far, without nodes that have no pods."""
        begun = self._begun
        lengths = [len(nodes) for _, nodes, _ in self._parts]
        added = np.repeat(np.array([i for i, _, _ in self._parts], dtype=np.int64), lengths)
        nodes = np.concatenate([begun.nodes, *(nodes for _, nodes, _ in self._parts)])
        items = np.concatenate([begun.items, added])
        pods = np.concatenate([begun.pods, *(amounts for _, _, amounts in self._parts)])
        contents = merged(nodes, items, pods)
        bins = np.concatenate([np.zeros(0, dtype=np.int64), *self._bought])
        return Packing(bins=bins, amounts=contents, items=len(self.problem.items))


def _least_needs(problem: Problem, order: Sequence[int]) -> IntArray:
    """Return (steps, dimensions) the least that any item from each step on takes of any offer."""
    needs = problem.needs.min(axis=1) if problem.inflated else problem.needs[:, 0, :]
    ordered = needs[np.array(order, dtype=np.int64)]
    return np.asarray(np.minimum.accumulate(ordered[::-1], axis=0)[::-1])


def item_order(problem: Problem, worth: FloatArray) -> list[int]:
    """Return the items: capped ones that need most nodes first, then those worth most per pod."""

    def key(i: int) -> tuple[int, float, int]:
        groups = problem.items[i].groups
        spread = 0
        for group in groups:
            members = problem.membership[:, group]
            spread = max(spread, -(-int(problem.counts[members].sum()) // int(problem.caps[group])))
        return (-spread, -float(worth[i]), problem.items[i].pod_class.number)

    return sorted(range(len(problem.items)), key=key)


def best_offers(
    problem: Problem,
    weights: FloatArray,
    preferred: int | None = None,
    among: Iterable[int] | None = None,
) -> dict[int, IntArray]:
    """Return per item (of `among`, or all) the offers in the order in which they are bought for it.

    For uncapped items those come first that give the most worth of resources per dollar, larger
    nodes first if equal; for capped ones those where a pod itself is cheapest.
    """
    prices = np.maximum(problem.prices, 1).astype(np.float64)
    numbers = np.arange(len(prices))
    value = np.round(problem.vectors.astype(np.float64) @ weights / prices, 6)
    by_value = np.lexsort((numbers, -problem.prices, -value))
    by_price = np.lexsort((numbers, problem.prices))
    orders: dict[int, IntArray] = {}
    for i in range(len(problem.items)) if among is None else among:
        item, slots = problem.items[i], problem.slots[i]
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
        orders[i] = order
    return orders


def first_fit(
    problem: Problem,
    order: Sequence[int],
    offers: Mapping[int, IntArray],
    begun: Packing | None = None,
) -> Packing:
    """Pack items in this order, buying for each from its offers in order.

    Args:
        problem: What to pack.
        order: Items, first to last.
        offers: Per item the offers to buy from, best first.
        begun: Nodes to start with, and their pods.
    """
    bins = Bins(problem, order, begun)
    counts = problem.counts if begun is None else problem.counts - begun.served()
    for step, item in enumerate(order):
        if step % _CLOSING_STEPS == 0:
            bins.put_away(step)
        left = int(counts[item])
        left -= _fill(bins, item, left)
        for offer in offers[item]:
            if left <= 0:
                break
            left -= _buy(bins, item, int(offer), left)
    return bins.packing()


def _fill(bins: Bins, item: int, count: int) -> int:
    """Fill room on the nodes, the tightest first; return how many pods found room."""
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
    """Buy nodes of the offer for up to `count` pods; return how many pods they take."""
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
