"""Sets of nodes by how many there are of each offer, and which of them cannot hold all pods.

A small purchase has few nodes, so there are few sets of nodes cheaper than a known packing, and
most of those are refuted at once: for any worth per pod, nodes that together cannot hold pods
worth as much as all pods are worth cannot hold all pods. This counts whole nodes, where a program
over shares of nodes buys a third of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.problem.effort import SECONDS_PER_SET_LISTED, Effort
from reconciler.planner.capacity.problem.problem import Problem
from reconciler.planner.placement.arrays import BoolArray, FloatArray, IntArray

SETS_MAX = 60_000
"""The most partial sets at any level; if there are more, nothing is listed."""
_STEPS_BESIDE = 4
"""What a partial set costs, in steps, in addition to one step per refutation."""
_SAFETY = 1e-9
"""Relative margin, so that floating-point rounding never refutes a set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """A condition on sets of nodes: the sum of their nodes' `most` must reach `worth`."""

    most: FloatArray
    """(offers,) the worth that a node can hold at most."""
    worth: float
    """The worth of all pods."""

    def allows(self, sets: IntArray) -> BoolArray:
        """Return (sets,) whether each of (sets, offers) is not refuted."""
        return np.asarray(sets @ self.most >= self.worth * (1 - _SAFETY))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSets:
    """Sets of nodes, the cheapest first."""

    sets: IntArray
    """(sets, offers) nodes."""
    costs: IntArray
    """(sets,) nano-USD per hour."""

    def only(self, kept: BoolArray) -> "NodeSets":
        """Return the listed sets for which `kept` is true."""
        return NodeSets(sets=self.sets[kept], costs=self.costs[kept])


def by_resources(problem: Problem) -> list[Refutation]:
    """Return one refutation per resource, with pods and nodes as divisible."""
    needs, room = problem.with_caps()
    least = np.where(problem.slots[:, :, None] > 0, needs, np.iinfo(np.int64).max).min(axis=1)
    total = problem.counts @ least
    return [
        Refutation(most=room[:, resource].astype(np.float64), worth=float(total[resource]))
        for resource in total.nonzero()[0]
    ]


def least_cost(problem: Problem, refutations: Sequence[Refutation]) -> float:
    """Return a cost below which every set is refuted."""
    prices = np.maximum(problem.prices, 1)
    return max(
        refutation.worth / float((refutation.most / prices).max())
        for refutation in refutations
        if refutation.worth > 0
    )


def list_sets(
    problem: Problem, refutations: Sequence[Refutation], least: int, below: int, effort: Effort
) -> NodeSets | None:
    """Return all sets that cost from `least` to less than `below` and that none refutes.

    None if there are too many, or too little effort is left. Offer by offer, the most expensive
    first, partial sets are dropped when the rest of the money cannot buy what they lack.
    """
    order = np.lexsort((np.arange(len(problem.prices)), -problem.prices))
    prices = np.maximum(problem.prices[order], 1)
    most = np.array([refutation.most[order] for refutation in refutations])
    worth = np.array([refutation.worth for refutation in refutations]) * (1 - _SAFETY)
    best_later = _best_rates_from(most / prices)
    nodes_max = np.minimum(problem.limits[order], int(problem.counts.sum()))
    sets = np.zeros((1, len(order)), dtype=np.int64)
    money = np.array([below - 1], dtype=np.int64)
    held = np.zeros((1, len(worth)))
    for level, price in enumerate(prices.tolist()):
        choices = np.minimum(money // price, nodes_max[level]) + 1
        partial = int(choices.sum())
        effort.spend(SECONDS_PER_SET_LISTED * partial * (len(worth) + _STEPS_BESIDE))
        if partial > SETS_MAX * len(prices) or not effort.left:
            return None
        parent = np.arange(len(choices)).repeat(choices)
        amount = np.arange(len(parent)) - (choices.cumsum() - choices)[parent]
        left = money[parent] - amount * price
        holds = held.take(parent, axis=0) + amount[:, None] * most[:, level]
        enough = holds + left[:, None] * best_later[level + 1] >= worth
        kept = enough.all(axis=1).nonzero()[0]
        if len(kept) > SETS_MAX:
            return None
        sets = sets.take(parent[kept], axis=0)
        sets[:, level] = amount[kept]
        money, held = left[kept], holds.take(kept, axis=0)
    found = np.empty_like(sets)
    found[:, order] = sets
    costs = found @ problem.prices
    costly = costs >= least
    ranked = np.argsort(costs[costly], kind="stable")
    return NodeSets(sets=found[costly][ranked], costs=costs[costly][ranked])


def _best_rates_from(rates: FloatArray) -> FloatArray:
    """Return (levels + 1, refutations) the best rate among the offers from each level on."""
    best = np.maximum.accumulate(rates[:, ::-1], axis=1)[:, ::-1].T
    return np.concatenate([best, np.zeros((1, best.shape[1]))])
