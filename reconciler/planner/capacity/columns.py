"""Column generation: a linear program over patterns, fed with patterns worth more than they cost.

Master: least cost of patterns that cover all items (Gilmore and Gomory, 1961). Its duals are what
a pod of each item is worth; pricing fills every offer greedily by that worth in several orders,
and exactly where greed finds nothing more. Then the solution is rounded bit by bit, with new
patterns for what is left each time.
"""

from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.assignment import assignment_bound
from reconciler.planner.capacity.effort import (
    SECONDS_PER_FILL,
    SECONDS_PER_FILLED_ITEM,
    SECONDS_PER_KNAPSACK,
    SECONDS_PER_MASTER,
    SECONDS_PER_MASTER_CELL,
    Effort,
)
from reconciler.planner.capacity.knapsack import best_patterns
from reconciler.planner.capacity.master import Master
from reconciler.planner.capacity.packing import best_offers, first_fit, item_order
from reconciler.planner.capacity.pricing import greedy_patterns, orders
from reconciler.planner.capacity.problem import Packing, Problem, no_packing
from reconciler.planner.capacity.right_size import right_size
from reconciler.planner.placement.arrays import FloatArray, IntArray

ITEMS_MAX = 160
OFFERS_MAX = 256
SINGLES = 3
PATTERNS_PER_OFFER = 3
EXACT_PER_ROUND = 4
DIVES_MAX = 400
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """What the search found."""

    packing: Packing
    worth: FloatArray
    """(items,) the master's duals in billionths of a dollar: fair prices of pods."""


def small_enough(problem: Problem) -> bool:
    """Whether the search is worth its steps."""
    items, offers = problem.slots.shape
    return bool(0 < items <= ITEMS_MAX and offers <= OFFERS_MAX)


def improve(problem: Problem, seeds: list[Packing], budget_seconds: float) -> Improvement:
    """Search from the patterns of known packings; two thirds of the budget go to the master."""
    master = Master(problem)
    for seed in seeds:
        master.add(seed.bins, seed.amounts)
    master.add(*_single_item_patterns(problem))
    effort = Effort(budget_seconds * 2 / 3)
    divisible = assignment_bound(problem)
    if divisible is not None:
        _price(problem, master, divisible.worth, effort, exact=False)
    worth = _generate(problem, master, effort)
    packing = _dive(problem, master, Effort(budget_seconds / 3))
    return Improvement(packing=_completed(problem, packing), worth=worth)


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


def _solve(master: Master, effort: Effort) -> tuple[FloatArray, FloatArray] | None:
    rows, columns = master.amounts.shape[1], len(master.offers)
    effort.spend(SECONDS_PER_MASTER + SECONDS_PER_MASTER_CELL * rows * columns)
    return master.solve()


def _generate(problem: Problem, master: Master, effort: Effort) -> FloatArray:
    """Add patterns until none is worth more than it costs, or the effort is spent."""
    worth = np.zeros(len(problem.items))
    while effort.left:
        found = _solve(master, effort)
        if found is None:
            break
        worth = found[0]
        if not _price(problem, master, worth, effort, exact=True):
            break
    return worth


def _price(
    problem: Problem, master: Master, worth: FloatArray, effort: Effort, *, exact: bool
) -> int:
    """Add patterns worth more than their node costs; how many."""
    item_orders = orders(problem, worth)
    effort.spend(SECONDS_PER_FILLED_ITEM * item_orders.shape[1])
    effort.spend(SECONDS_PER_FILL * item_orders.size * len(problem.prices))
    offers, amounts = greedy_patterns(problem, item_orders)
    gains = amounts @ worth - problem.prices[offers]
    found = _best_per_offer(problem, offers, gains)
    added = master.add(offers[found], amounts[found]) if len(found) else 0
    if added or not exact:
        return added
    best = np.full(len(problem.prices), -np.inf)
    np.maximum.at(best, offers, gains / np.maximum(problem.prices[offers], 1))
    ranked = np.argsort(-best, kind="stable")[:EXACT_PER_ROUND]
    effort.spend(SECONDS_PER_KNAPSACK * len(ranked))
    return _price_exactly(problem, master, worth, ranked)


def _best_per_offer(problem: Problem, offers: IntArray, gains: FloatArray) -> IntArray:
    """The most gainful patterns of each offer, so that no offer crowds the others out."""
    relative = gains / np.maximum(problem.prices[offers], 1)
    ranked = np.argsort(-relative, kind="stable")
    ranked = ranked[relative[ranked] > _TOLERANCE]
    grouped = ranked[np.argsort(offers[ranked], kind="stable")]
    place = np.arange(len(grouped)) - np.searchsorted(offers[grouped], offers[grouped])
    return grouped[place < PATTERNS_PER_OFFER]


def _price_exactly(problem: Problem, master: Master, worth: FloatArray, offers: IntArray) -> int:
    """The best whole pattern of the offers that promise most, when greedy filling finds none."""
    added = 0
    for offer, amounts in best_patterns(problem, worth, offers):
        if amounts @ worth > problem.prices[offer] * (1 + _TOLERANCE):
            added += master.add(np.array([offer]), amounts[None, :])
    return added


def _dive(problem: Problem, master: Master, effort: Effort) -> Packing:
    """Round the fractional solution bit by bit, with new patterns for what is left each time."""
    bins: list[IntArray] = []
    amounts: list[IntArray] = []
    rest = problem
    for _ in range(DIVES_MAX):
        found = _solve(master, effort)
        if found is None or not rest.counts.any():
            break
        if effort.left and _price(rest, master, found[0], effort, exact=False):
            found = _solve(master, effort) or found
        copies = _whole_part(found[1])
        taken = copies.nonzero()[0]
        bins.append(np.repeat(master.offers[taken], copies[taken]))
        amounts.append(np.repeat(master.amounts[taken], copies[taken], axis=0))
        covered = master.amounts[taken].T @ copies[taken]
        rest = rest.remainder(np.maximum(rest.counts - covered, 0), bins[-1])
        master.demand(rest.counts, rest.limits)
    if not bins:
        return no_packing(problem)
    return Packing(bins=np.concatenate(bins), amounts=np.vstack(amounts))


def _whole_part(fractions: FloatArray) -> IntArray:
    """Whole copies of each pattern; one of the fullest fraction when there are none."""
    copies = np.floor(fractions + 1e-6).astype(np.int64)
    if not copies.any():
        copies[int(np.argmax(np.round(fractions, 6)))] = 1
    return copies


def _completed(problem: Problem, packing: Packing) -> Packing:
    """Exactly the demand: surplus pods taken off, missing ones first-fitted, nodes right-sized."""
    amounts = packing.amounts.copy()
    for item in range(len(problem.items)):
        above = np.cumsum(amounts[:, item]) - int(problem.counts[item])
        amounts[:, item] -= np.clip(above, 0, amounts[:, item])
    used = np.asarray(amounts.any(axis=1))
    kept = right_size(problem, Packing(bins=packing.bins[used], amounts=amounts[used]))
    missing = problem.counts - kept.served()
    if not missing.any():
        return kept
    rest = problem.remainder(missing, kept.bins)
    order = item_order(rest, rest.needs.min(axis=1).max(axis=1).astype(np.float64))
    weights = 1.0 / np.maximum(rest.vectors.max(axis=0), 1)
    filled = first_fit(rest, order, best_offers(rest, weights, None))
    both = Packing(
        bins=np.concatenate([kept.bins, filled.bins]),
        amounts=np.vstack([kept.amounts, filled.amounts]),
    )
    return right_size(problem, both)
