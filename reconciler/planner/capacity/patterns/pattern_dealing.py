"""Deals pods out to patterns of shapes: the offer of each node, and its pods."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.problem.problem import Contents, Packing, Problem
from reconciler.planner.placement.arrays import UNLIMITED, IntArray

_SPENT_MAX = 8
"""How many items without pods a pool may hold before they are removed from it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeSizes:
    """Sizes of nodes; offers of one size differ only in their places."""

    firsts: IntArray
    """(sizes,) the first offer of each size."""
    offers: tuple[IntArray, ...]
    """Per size all its offers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShapePacking:
    """A packing of shapes on sizes."""

    packing: Packing
    sizes: NodeSizes
    shape_of: IntArray
    """(items,)."""


@dataclass(slots=True, eq=False)
class _Pool:
    """Items of one shape that an offer takes, in the order in which they are dealt out."""

    items: list[int]
    bound: int
    """How many of its pods some other offers of the size do not take."""


class _Node:
    """What the rules on hostnames say, given the pods on the node so far."""

    __slots__ = ("counted", "held", "most")

    def __init__(self) -> None:
        self.held: Counter[int] = Counter()
        self.counted: Counter[int] = Counter()
        self.most: dict[int, int] = {}


class _Dealer:
    """Deals the pods of a problem out, node by node."""

    def __init__(self, problem: Problem, shaped: ShapePacking) -> None:
        self._problem = problem
        self._left = problem.counts.tolist()
        self._limits = problem.limits.tolist()
        self._bought = Counter[int]()
        self._rules = [item.rules for item in problem.items]
        self._groups = [item.groups for item in problem.items]
        self._alone = [not (item.groups or any(item.rules)) for item in problem.items]
        """Per item whether no rule concerns its pods and their neighbours."""
        self._caps = problem.caps.tolist()
        self._pools: dict[tuple[int, bytes], _Pool] = {}
        self._bound_in: dict[int, list[_Pool]] = {}
        self._members = [
            (shaped.shape_of == shape).nonzero()[0] for shape in range(shaped.shape_of.max() + 1)
        ]
        self._pool_at = {
            (shape, offer): pool
            for offers in shaped.sizes.offers
            for shape, members in enumerate(self._members)
            for offer, pool in self._pools_of(shape, members, offers)
        }

    def _pools_of(self, shape: int, members: IntArray, offers: IntArray) -> list[tuple[int, _Pool]]:
        takes = self._problem.slots[members[:, None], offers] > 0
        among = takes.sum(axis=1)
        found = []
        for column, offer in enumerate(offers.tolist()):
            key = shape, takes[:, column].tobytes()
            pool = self._pools.get(key)
            if pool is None:
                here = takes[:, column].nonzero()[0]
                order = sorted(
                    here.tolist(), key=lambda m: (among[m], self._ruled(int(members[m])), m)
                )
                bound = members[here[among[here] < len(offers)]]
                pool = _Pool(
                    items=members[order].tolist(), bound=int(self._problem.counts[bound].sum())
                )
                self._pools[key] = pool
                for item in bound.tolist():
                    self._bound_in.setdefault(item, []).append(pool)
            found.append((offer, pool))
        return found

    def _ruled(self, item: int) -> int:
        """Return the sort key of an item: those with rules first, which need empty nodes."""
        return 0 if self._rules[item].obeys else 1

    def offer(self, offers: list[int], shapes: list[tuple[int, int]]) -> int | None:
        """Return the offer whose place the most pods need; None if all are used up."""

        def rank(offer: int) -> tuple[int, int, int, int]:
            pools = [self._pool_at[shape, offer] for shape, _ in shapes]
            waiting = sum([pool.bound for pool in pools])
            if not waiting:
                return 0, 0, self._bought[offer], offer
            served = sum([min(n, p.bound) for p, (_, n) in zip(pools, shapes, strict=True)])
            return -served, -waiting, self._bought[offer], offer

        chosen = min((o for o in offers if self._limits[o] > 0), key=rank, default=None)
        if chosen is not None:
            self._bought[chosen] += 1
            self._limits[chosen] -= 1
        return chosen

    def pods(self, offer: int, shapes: list[tuple[int, int]]) -> Counter[int]:
        """Return pods for a node of the offer; fewer if rules or places forbid more."""
        node = _Node()
        found: Counter[int] = Counter()
        for shape, amount in shapes:
            pool = self._pool_at[shape, offer]
            while amount and (item := self._next(pool, node)) is not None:
                pods = min(amount, self._left[item]) if self._alone[item] else 1
                self._take(item, node, pods)
                found[item] += pods
                amount -= pods  # noqa: PLW2901 - what the shape still lacks
        return found

    def _next(self, pool: _Pool, node: _Node) -> int | None:
        """Return the first item that has pods left and that the node's pods allow."""
        spent = 0
        found = None
        for item in pool.items:
            if not self._left[item]:
                spent += 1
            elif self._alone[item] or self._fits(item, node):
                found = item
                break
        if spent > _SPENT_MAX:
            pool.items = [item for item in pool.items if self._left[item]]
        return found

    def _fits(self, item: int, node: _Node) -> bool:
        for group in self._groups[item]:
            if node.held[group] >= self._caps[group]:
                return False
        rules = self._rules[item]
        for rule, most in rules.obeys:
            if node.counted[rule] + (rule in rules.counts_for) > most:
                return False
        return all(node.counted[rule] < node.most.get(rule, UNLIMITED) for rule in rules.counts_for)

    def _take(self, item: int, node: _Node, pods: int) -> None:
        """Count the pods as dealt; pods of an item with rules are dealt one by one."""
        self._left[item] -= pods
        for pool in self._bound_in.get(item, ()):
            pool.bound -= pods
        if self._alone[item]:
            return
        for group in self._groups[item]:
            node.held[group] += 1
        rules = self._rules[item]
        for rule in rules.counts_for:
            node.counted[rule] += 1
        for rule, most in rules.obeys:
            node.most[rule] = min(most, node.most.get(rule, most))


def deal_out(problem: Problem, shaped: ShapePacking) -> Packing:
    """Return the packing of shapes with the problem's pods on the problem's offers.

    Pods that need a place are dealt first, then those with rules about their neighbours, so that
    those that may be anywhere use the rest. Pods for which no node is suitable are left over.
    """
    dealer = _Dealer(problem, shaped)
    bins: list[int] = []
    dealt: list[Counter[int]] = []
    amounts = shaped.packing.amounts
    for size, row in zip(shaped.packing.bins.tolist(), amounts, strict=True):
        shapes = [(shape, int(row[shape])) for shape in row.nonzero()[0].tolist()]
        offer = dealer.offer(shaped.sizes.offers[size].tolist(), shapes)
        pods = dealer.pods(offer, shapes) if offer is not None else None
        if offer is not None and pods:
            bins.append(offer)
            dealt.append(pods)
    entries = [(n, item, pods[item]) for n, pods in enumerate(dealt) for item in sorted(pods)]
    nodes, items, pods_of = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    return Packing(
        bins=np.array(bins, dtype=np.int64),
        amounts=Contents(nodes=nodes, items=items, pods=pods_of),
        items=len(problem.items),
    )
