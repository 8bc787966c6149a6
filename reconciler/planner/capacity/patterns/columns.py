"""Column generation: a linear program over patterns, and a search for patterns that improve it.

The master program minimises the cost of patterns that cover all items (Gilmore and Gomory, 1961).
Its duals are the worth of a pod of each item; pricing looks for patterns that are worth more than
they cost. The many items that cost next to nothing are set aside at first.
"""

from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.bounds.assignment import AssignmentBound, assignment_bound
from reconciler.planner.capacity.patterns.knapsack import PAIRS_MAX
from reconciler.planner.capacity.patterns.master import Master
from reconciler.planner.capacity.patterns.neighbour_patterns import NeighbourPricer
from reconciler.planner.capacity.patterns.pricing import GreedyPricer, Pricer, SearchPricer
from reconciler.planner.capacity.patterns.rounding import Rounding
from reconciler.planner.capacity.problem.effort import Effort
from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.placement.arrays import BoolArray, FloatArray, IntArray

ITEMS_MAX = 160
OFFERS_MAX = 256
SINGLES = 3
Shares = tuple[tuple[float, float], ...]
GENERATIONS: Shares = ((0.3, 0.02), (0.3, 0.0))
"""Per generation: its share of the budget, and the share of the cost whose many small items are
set aside. The rest of the budget is for rounding."""
GENERATIONS_OF_MANY: Shares = ((0.5, 0.0),)
"""The generations if there are many pods of each item, as patterns near known ones are found
quickly."""
MANY = 20
"""With this many pods per item patterns are repeated."""
FEW = 0.5
"""New patterns per item: after a round with fewer and little saving the next one searches more
widely."""
PROGRESS = 2e-3
"""Share of the cost: after a round that saves less and adds few patterns the next one searches
more widely."""
GOOD = 0.003
"""Share of the fractional optimum: a packing at most this much above it is good enough."""
ROUNDING_LEAST = 0.02
"""The least effort for rounding, in seconds."""
ROUNDING_MOST = 1.5
"""The most effort for rounding, in multiples of that for finding the patterns, as easy ones are
found quickly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """What the search found."""

    packing: Packing
    worth: FloatArray
    """(items,) the master's duals in nano-USD: fair prices of pods."""
    settled: bool
    """Whether the search ended with no gainful pattern left; else it ran out of effort."""
    divisible: AssignmentBound | None
    """A packing of the same problem."""


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
    master.add(*GreedyPricer(problem).seeds(worth, effort))
    shares = GENERATIONS_OF_MANY if _many(problem) else GENERATIONS
    for share, light in shares:
        aside = _negligible(problem, worth, light)
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
    """Return a pricer: it changes known patterns if pods per item are many, else it searches."""
    small = problem.slots.size <= PAIRS_MAX
    pricer: Pricer = SearchPricer(problem) if small else GreedyPricer(problem)
    return NeighbourPricer(problem, master, pricer) if _many(problem) else pricer


def _negligible(problem: Problem, worth: FloatArray, share: float) -> BoolArray:
    """Return (items,) True for items of negligible total worth; they fill leftover room."""
    total = worth * problem.counts
    order = np.argsort(total, kind="stable")
    light = np.zeros(len(total), dtype=np.bool_)
    light[order] = np.cumsum(total[order]) <= share * total.sum()
    return light & (worth > 0)


def _single_item_patterns(problem: Problem) -> tuple[IntArray, IntArray]:
    """Return patterns of one item each, on its cheapest offers, to make the master solvable."""
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
        (items,) the worth of a pod, and the cost of everything with fractional patterns.
    """
    worth = np.zeros(len(problem.items))
    cost, added = np.inf, len(worth)
    while effort.left and added:
        master_solution = master.solve(effort)
        if master_solution is None:
            break
        worth, before = master_solution.worth, cost
        cost = float(problem.prices[master.offers] @ master_solution.shares)
        if added < FEW * len(worth) and cost > before * (1 - PROGRESS):
            pricer.try_harder()
        added = master.add(
            *pricer.patterns(worth, problem.prices + master_solution.premiums, effort)
        )
    return worth, cost
