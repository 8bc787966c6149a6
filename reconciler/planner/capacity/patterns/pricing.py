"""Patterns that are worth more than they cost, for all offers at once."""

from dataclasses import replace
from typing import Protocol

import numpy as np

from reconciler.planner.capacity.patterns.knapsack import Knapsacks
from reconciler.planner.capacity.patterns.knapsack_search import (
    NO_LIMIT,
    PATTERNS_PER_OFFER,
    FillResult,
    fill,
)
from reconciler.planner.capacity.problem.effort import (
    SECONDS_PER_AMOUNT,
    SECONDS_PER_GREEDY,
    SECONDS_PER_GREEDY_ITEM,
    SECONDS_PER_LEVEL,
    SECONDS_PER_RELAXED_PAIR,
    Effort,
)
from reconciler.planner.capacity.problem.problem import Problem
from reconciler.planner.placement.arrays import BoolArray, FloatArray, IntArray

MIXES = 9
"""Orders of items by worth per mixed share of CPU and memory, from all CPU to all memory."""
SHAKEN = 6
"""Further orders with slightly randomised worth, so that greedy filling finds other patterns."""
_SHAKE = 0.25
SEEDS_PER_ITEM = 3
WIDTH = 60
"""How many partly filled nodes per offer a search for patterns keeps."""
CELLS = 40_000
"""How many partly filled nodes of all offers at all levels a search keeps at most."""
RESTING = 3
"""For how many rounds an offer without a gainful pattern is left out."""
_MARGIN = 5e-4
"""Patterns with a smaller relative gain are not looked for."""
_TOLERANCE = 1e-6

Patterns = tuple[IntArray, IntArray]
"""The offer of each pattern, and (patterns, items) amounts."""


class Pricer(Protocol):
    """A way to find patterns."""

    def demand(self, counts: IntArray) -> None:
        """Set how many pods of each item are pending; patterns hold no more of it."""

    def patterns(self, worth: FloatArray, costs: FloatArray, effort: Effort) -> Patterns:
        """Return patterns worth more than (offers,) `costs`; none if none is found."""

    def try_harder(self) -> None:
        """Search more widely from now on; recent patterns improved little."""


class SearchPricer:
    """Finds patterns by a search that is exact if few different pods fit a node.

    Offers without a gainful pattern are left out for some rounds, as most never have one.
    """

    def __init__(self, problem: Problem) -> None:
        self._greedy = GreedyPricer(problem)
        self._knapsacks = Knapsacks(problem)
        self._resting = np.zeros(len(problem.prices), dtype=np.int64)
        self._easy = True

    def demand(self, counts: IntArray) -> None:
        """See `Pricer.demand`."""
        self._greedy.demand(counts)
        self._knapsacks.demand(counts)
        self._resting[:] = 0
        self._easy = True

    def patterns(self, worth: FloatArray, costs: FloatArray, effort: Effort) -> Patterns:
        """See `Pricer.patterns`; also returns the best pattern for every item, gainful or not."""
        if self._easy:
            easy = self._greedy.patterns(worth, costs, effort)
            if len(easy[0]):
                return easy
            self._easy = False
        awake = self._resting <= 0
        fill_result = self._search(worth, costs, awake, effort)
        gainful = fill_result.amounts @ worth > costs[fill_result.offers] * (1 + _TOLERANCE)
        if not gainful.any() and not awake.all():
            awake = ~awake
            fill_result = self._search(worth, costs, awake, effort)
            gainful = fill_result.amounts @ worth > costs[fill_result.offers] * (1 + _TOLERANCE)
        self._resting -= 1
        idle = awake.copy()
        idle[fill_result.offers[gainful]] = False
        self._resting[idle] = RESTING
        self._resting[awake & ~idle] = 0
        return fill_result.offers, fill_result.amounts

    def try_harder(self) -> None:
        """Search right away from now on, without greedy filling first."""
        self._easy = False

    def _search(
        self, worth: FloatArray, costs: FloatArray, among: BoolArray, effort: Effort
    ) -> FillResult:
        fill_result = fill(
            self._knapsacks,
            worth,
            costs,
            margin=_MARGIN,
            width=WIDTH,
            among=among.nonzero()[0],
            cells=CELLS,
        )
        effort.spend(SECONDS_PER_RELAXED_PAIR * self._knapsacks.most.size)
        effort.spend(
            SECONDS_PER_LEVEL * fill_result.levels + SECONDS_PER_AMOUNT * fill_result.tried
        )
        return fill_result


class GreedyPricer:
    """Finds patterns by filling nodes greedily in several orders: for larger problems."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def demand(self, counts: IntArray) -> None:
        """See `Pricer.demand`."""
        self._problem = replace(self._problem, counts=counts)

    def patterns(self, worth: FloatArray, costs: FloatArray, effort: Effort) -> Patterns:
        """See `Pricer.patterns`."""
        item_orders = orders(self._problem, worth)
        effort.spend(SECONDS_PER_GREEDY_ITEM * item_orders.shape[1])
        effort.spend(SECONDS_PER_GREEDY * item_orders.size * len(costs))
        offers, amounts = greedy_patterns(self._problem, item_orders)
        gains = (amounts @ worth - costs[offers]) / np.maximum(costs[offers], 1)
        found = _best_per_offer(offers, gains)
        return offers[found], amounts[found]

    def try_harder(self) -> None:
        """Do nothing: greedy filling has no wider search."""

    def seeds(self, worth: FloatArray, effort: Effort) -> Patterns:
        """Return the best patterns of each offer and for each item, whether or not they gain."""
        problem = self._problem
        item_orders = orders(problem, worth)
        effort.spend(SECONDS_PER_GREEDY_ITEM * item_orders.shape[1])
        effort.spend(SECONDS_PER_GREEDY * item_orders.size * len(problem.prices))
        offers, amounts = greedy_patterns(problem, item_orders)
        rates = amounts @ worth / np.maximum(problem.prices[offers], 1)
        ranked = np.argsort(-rates, kind="stable")
        held = amounts[ranked] > 0
        place = np.cumsum(held, axis=0)
        chosen = ranked[(held & (place <= SEEDS_PER_ITEM)).any(axis=1)]
        return offers[chosen], amounts[chosen]


def _best_per_offer(offers: IntArray, gains: FloatArray) -> IntArray:
    """Return the most gainful patterns of each offer, so that each offer is represented."""
    ranked = np.argsort(-gains, kind="stable")
    ranked = ranked[gains[ranked] > _TOLERANCE]
    grouped = ranked[np.argsort(offers[ranked], kind="stable")]
    place = np.arange(len(grouped)) - np.searchsorted(offers[grouped], offers[grouped])
    return np.asarray(grouped[place < PATTERNS_PER_OFFER])


def orders(problem: Problem, worth: FloatArray) -> IntArray:
    """Return (orders, items) the items with worth, best first, by several measures of size."""
    wanted = ((worth > 0) & (problem.counts > 0)).nonzero()[0]
    typical = np.maximum(np.median(problem.vectors, axis=0), 1)
    share = problem.needs[wanted].min(axis=1) / typical
    mix = np.linspace(0, 1, MIXES)[:, None]
    sizes = np.vstack([mix * share[:, 0] + (1 - mix) * share[:, 1], share.max(axis=1)])
    rates = worth[wanted] / np.maximum(sizes, 1e-9)
    generator = np.random.default_rng(len(wanted))
    shaken = generator.uniform(1 - _SHAKE, 1 + _SHAKE, (SHAKEN, len(wanted))) * rates[MIXES // 2]
    return wanted[np.argsort(-np.vstack([rates, shaken]), axis=1, kind="stable")]


def greedy_patterns(problem: Problem, item_orders: IntArray) -> tuple[IntArray, IntArray]:
    """Fill every offer in every order, with as many of each item as fit; return the patterns.

    Returns:
        The offer of each pattern, and (patterns, items) amounts within demand and caps per node.
    """
    count, offers = len(item_orders), len(problem.prices)
    asked = np.asarray(np.any(problem.needs, axis=(0, 1))).nonzero()[0]
    every_most = np.minimum(problem.slots, problem.counts[:, None])
    room = np.broadcast_to(problem.vectors[:, asked], (count, offers, len(asked))).copy()
    held = np.zeros((count, offers, len(problem.caps)), dtype=np.int64)
    amounts = np.zeros((count, offers, len(problem.items)), dtype=np.int64)
    fits = np.empty_like(room)
    line = np.arange(count)
    for items in item_orders.T:
        needs = problem.needs[items][:, :, asked]
        fits.fill(NO_LIMIT)
        np.floor_divide(room, needs, out=fits, where=needs > 0)
        most = np.minimum(every_most[items], fits.min(axis=2, initial=NO_LIMIT))
        for group in problem.membership[items].any(axis=0).nonzero()[0]:
            member = problem.membership[items, group][:, None]
            allowed = np.maximum(problem.caps[group] - held[:, :, group], 0)
            np.minimum(most, np.where(member, allowed, most), out=most)
            held[:, :, group] += np.where(member, np.maximum(most, 0), 0)
        np.maximum(most, 0, out=most)
        room -= needs * most[:, :, None]
        amounts[line, :, items] = most
    return np.tile(np.arange(offers), count), amounts.reshape(count * offers, -1)
