"""Column generation: a linear program over patterns, fed with patterns worth more than they cost.

Master: least cost of patterns that cover all items (Gilmore and Gomory, 1961). Its duals are what
a pod of each item is worth; pricing looks for what nodes may hold that is worth more than they
cost. The many items that cost next to nothing are left aside at first.
"""

from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.bounds.assignment import AssignmentBound, assignment_bound
from reconciler.planner.capacity.patterns.knapsack import PAIRS_MAX
from reconciler.planner.capacity.patterns.master import Master
from reconciler.planner.capacity.patterns.neighbour_patterns import Nearby
from reconciler.planner.capacity.patterns.pricing import Greedy, Pricer, Searching
from reconciler.planner.capacity.patterns.rounding import Rounding
from reconciler.planner.capacity.problem.effort import Effort
from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.placement.arrays import BoolArray, FloatArray, IntArray

ITEMS_MAX = 160
OFFERS_MAX = 256
SINGLES = 3
Shares = tuple[tuple[float, float], ...]
GENERATIONS: Shares = ((0.3, 0.02), (0.3, 0.0))
"""Per generation its share of the budget, and the share of the cost whose many small items are left
aside. The rest of the budget is for rounding."""
GENERATIONS_OF_MANY: Shares = ((0.5, 0.0),)
"""Generations where there are many pods of each item: patterns near known ones are soon found."""
MANY = 20
"""Pods per item from which on patterns are repeated."""
FEW = 0.5
"""New patterns per item: a round that adds fewer and saves little makes the next look closer."""
PROGRESS = 2e-3
"""Share of the cost: a round that saves less and adds few patterns makes the next look closer."""
GOOD = 0.003
"""Share of the least cost of shares of patterns: a packing so little above it is good enough."""
ROUNDING_LEAST = 0.02
"""Seconds of effort that rounding may take at least."""
ROUNDING_MOST = 1.5
"""Times the effort of finding the patterns: rounding takes no more, as easy ones are soon done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """What the search found."""

    packing: Packing
    worth: FloatArray
    """(items,) the master's duals in billionths of a dollar: fair prices of pods."""
    settled: bool
    """No pattern was found any more that gains at that worth; else the effort ran out before."""
    divisible: AssignmentBound | None
    """Of the same problem."""


def small_enough(problem: Problem) -> bool:
    """Return whether the search is worth its steps."""
    items, offers = problem.slots.shape
    return bool(0 < items <= ITEMS_MAX and offers <= OFFERS_MAX)


def improve(problem: Problem, seeds: list[Packing], budget_seconds: float) -> Improvement:
    """Search from the patterns of known packings."""
    master = Master(problem)
    for seed in seeds:
        master.add(seed.bins, seed.amounts)
    master.add(*_single_item_patterns(problem))
    divisible = assignment_bound(problem)
    pricer = _pricer(problem, master)
    effort = Effort(0.0)
    least, cost = 0.0 if divisible is None else divisible.nano_usd, np.inf
    worth = np.zeros(len(problem.items)) if divisible is None else divisible.worth
    aside = np.zeros(len(worth), dtype=np.bool_)
    master.add(*Greedy(problem).seeds(worth, effort))
    shares = GENERATIONS_OF_MANY if _many(problem) else GENERATIONS
    for share, light in shares:
        aside = _light(problem, worth, light)
        effort.seconds += share * budget_seconds
        counts = np.where(aside, 0, problem.counts)
        pricer.demand(counts)
        master.demand(counts, problem.limits)
        found, cost = _generate(problem, master, pricer, effort)
        worth = np.where(aside, worth, found)
    converged = effort.left
    if converged and np.isfinite(cost):
        least = max(least, cost)
    generation = budget_seconds * sum(share for share, _ in shares)
    most = max(ROUNDING_LEAST, ROUNDING_MOST * (generation - effort.seconds))
    effort.seconds = min(effort.seconds + budget_seconds - generation, most)
    packing = Rounding(problem, master, pricer, worth, effort).round(aside, least * (1 + GOOD))
    return Improvement(packing=packing, worth=worth, settled=converged, divisible=divisible)


def _many(problem: Problem) -> bool:
    return int(problem.counts.sum()) >= MANY * len(problem.items)


def _pricer(problem: Problem, master: Master) -> Pricer:
    """Known patterns are changed where they are repeated; few pods need another for each node."""
    small = problem.slots.size <= PAIRS_MAX
    pricer: Pricer = Searching(problem) if small else Greedy(problem)
    return Nearby(problem, master, pricer) if _many(problem) else pricer


def _light(problem: Problem, worth: FloatArray, share: float) -> BoolArray:
    """(items,) True for items whose total worth is negligible; they fill leftover room."""
    total = worth * problem.counts
    order = np.argsort(total, kind="stable")
    light = np.zeros(len(total), dtype=np.bool_)
    light[order] = np.cumsum(total[order]) <= share * total.sum()
    return light & (worth > 0)


def _single_item_patterns(problem: Problem) -> tuple[IntArray, IntArray]:
    """Per item the offers on which its pods are cheapest, full of it: the master can be solved."""
    taking = problem.slots > 0
    rate = np.where(taking, problem.prices / np.maximum(problem.slots, 1), np.inf)
    offers = np.argsort(rate, axis=1, kind="stable")[:, :SINGLES].ravel()
    items = np.repeat(np.arange(len(problem.items)), min(SINGLES, len(problem.prices)))
    possible = taking[items, offers]
    items, offers = items[possible], offers[possible]
    amounts = np.zeros((len(items), len(problem.items)), dtype=np.int64)
    amounts[np.arange(len(items)), items] = np.minimum(
        problem.slots[items, offers], problem.counts[items]
    )
    return offers.astype(np.int64), amounts


def _generate(
    problem: Problem, master: Master, pricer: Pricer, effort: Effort
) -> tuple[FloatArray, float]:
    """Add patterns until none is worth more than it costs, or the effort is spent.

    Returns:
        (items,) worth of a pod, and what everything costs in shares of patterns.
    """
    worth = np.zeros(len(problem.items))
    cost, added = np.inf, len(worth)
    while effort.left and added:
        found = master.solve(effort)
        if found is None:
            break
        worth, before = found.worth, cost
        cost = float(problem.prices[master.offers] @ found.shares)
        if added < FEW * len(worth) and cost > before * (1 - PROGRESS):
            pricer.try_harder()
        added = master.add(*pricer.patterns(worth, problem.prices + found.premiums, effort))
    return worth, cost
