"""Choosing among packings: each candidate is complete; the cheapest that serves most wins."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.planner.capacity.bounds.assignment import AssignmentBound, assignment_bound
from reconciler.planner.capacity.bounds.fair_prices import FairPrices, lower_bound
from reconciler.planner.capacity.node_sets.search import CheapestSet, cheapest_set, suits
from reconciler.planner.capacity.packings.even_filling import levelled
from reconciler.planner.capacity.packings.exact import exact
from reconciler.planner.capacity.packings.first_fit import best_offers, first_fit, item_order
from reconciler.planner.capacity.packings.node_mix import filled_mixes
from reconciler.planner.capacity.packings.right_size import right_size
from reconciler.planner.capacity.patterns.columns import improve, small_enough
from reconciler.planner.capacity.patterns.rounding import top_up
from reconciler.planner.capacity.patterns.shapes import by_shapes
from reconciler.planner.capacity.problem.dominance import on_all_offers, undominated
from reconciler.planner.capacity.problem.effort import Effort
from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.capacity.problem.purchase import PurchaseLimits
from reconciler.planner.placement.arrays import FloatArray, IntArray

_PREFERRED_MAX = 8
"""How many offers are tried, one after the other, as the preferred one; more find little."""
_PREFERRED_ITEMS = 6_000
"""How many items are packed in all tries together: with many items fewer offers are tried."""
FOR_SETS = 2.0
"""The share of the search budget for sets of nodes, which are for few pods and quick plans."""
AFTER_SETS = 0.3
"""The share of the search budget for patterns if sets of nodes proved no optimum, in addition to
what the search over sets left of its own share."""
FOR_SHAPES = 0.25
"""The share of the search budget for patterns of shapes; dealing out thousands of pods takes
time too."""
_NEAR = 1.12
"""In multiples of the worth of all pods: if a packing by shapes costs less, first fit finds none
better."""
_CLOSE = 1.005
"""In multiples of the worth of all pods: if a packing costs less, mixes of nodes find none
better."""
_LEVELS_MAX = 16
"""How many priorities are placed one after the other; those below them are placed together."""
_LARGE = 200_000
"""Above this many items x offers only the first candidate is tried."""


def candidates(problem: Problem, fair: FairPrices) -> Iterable[Packing]:
    """Yield packings to choose from, the most promising first."""
    worth = fair.items
    order = item_order(problem, worth)
    offers = best_offers(problem, fair.weights, None)
    yield _sized(problem, order, offers)
    if problem.slots.size > _LARGE:
        return
    by_size = sorted(order, key=lambda i: -float(worth[i]))
    if by_size != order:
        yield _sized(problem, by_size, offers)
    for offer in _best_priced_offers(problem, fair):
        yield _sized(problem, order, best_offers(problem, fair.weights, int(offer)))


def _packed(problem: Problem, fair: FairPrices, found: list[Packing]) -> Packing:
    """Return the cheapest of these packings, and of others if none is near the lower bound.

    No search begins with those others: from them it would find more expensive ones.
    """
    best = cheapest(problem, found)
    if best.cost(problem) <= _CLOSE * float(fair.items @ problem.counts):
        return best
    more: list[Packing] = []
    if problem.slots.size <= _LARGE:
        if not len(problem.caps):
            more += _by_shares(problem, fair)
        more += filled_mixes(problem, fair)
    elif not len(problem.caps):
        kept = undominated(problem)
        mixes = filled_mixes(problem.only(kept), fair)
        more += [on_all_offers(packing, kept) for packing in mixes]
    return cheapest(problem, [best, *more])


def _by_shares(problem: Problem, fair: FairPrices) -> Iterable[Packing]:
    """Return first fit with pods ordered by their dominant share of a node, largest first.

    The worth of a pod says nothing about resources of which the cheapest nodes have plenty.
    """
    for offer in _best_priced_offers(problem, fair).tolist():
        share = (problem.needs[:, offer, :] / np.maximum(problem.vectors[offer], 1)).max(axis=1)
        order = np.argsort(-share, kind="stable").tolist()
        yield _sized(problem, order, best_offers(problem, fair.weights, offer))


def _best_priced_offers(problem: Problem, fair: FairPrices) -> IntArray:
    """Return the offers with the most worth per dollar, smaller ones first if equal."""
    useful = problem.useful().nonzero()[0]
    prices = np.maximum(problem.prices[useful], 1).astype(np.float64)
    rate = np.round(-(problem.vectors[useful].astype(np.float64) @ fair.weights) / prices, 6)
    most = max(1, min(_PREFERRED_MAX, _PREFERRED_ITEMS // len(problem.items)))
    return np.asarray(useful[np.lexsort((useful, problem.prices[useful], rate))][:most])


def _evenly_filled(problem: Problem, fair: FairPrices) -> Packing | None:
    """Yield evenly filled packings of the best-priced offer, as small as the bound allows."""
    promising = _best_priced_offers(problem, fair)
    if not len(promising):
        return None
    offer = int(promising[0])
    price = max(1, int(problem.prices[offer]))
    return levelled(problem, offer, lower_bound(problem, fair) // price)


def _sized(problem: Problem, order: list[int], offers: Mapping[int, IntArray]) -> Packing:
    return right_size(problem, first_fit(problem, order, offers))


def shortfall(problem: Problem, packing: Packing) -> tuple[int, ...]:
    """Return the pods left over by priority, highest first: this is compared before cost."""
    left = problem.counts - packing.served()
    levels: dict[int, int] = {}
    for item, missing in zip(problem.items, left, strict=True):
        priority = item.pod_class.spec.priority
        levels[priority] = levels.get(priority, 0) + int(missing)
    return tuple(levels[p] for p in sorted(levels, reverse=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The packing to buy, and what a pod of each item turned out to be worth."""

    packing: Packing
    worth: FloatArray | None = None
    """(items,); None if no search was made."""
    settled: bool = False
    """Whether the search finished, so that its worth is as fair as it finds."""
    divisible: AssignmentBound | None = None
    """The divisible solution of this problem; None if it was not solved."""
    optimal: bool = False
    """Whether it is proven that no packing of this problem is cheaper."""
    nano_usd_least: int | None = None
    """A proven lower bound on the cost of this problem; None if there is none."""


def search(problem: Problem, fair: FairPrices, budget_seconds: float) -> SearchResult:
    """Return the cheapest packing for few pods, else a fast one, improved if that is worth it."""
    best = exact(problem)
    if best is not None:
        return SearchResult(packing=best, optimal=True)
    even = _evenly_filled(problem, fair)
    if even is not None:
        return SearchResult(packing=even, optimal=True)
    if problem.slots.size > _LARGE:
        return SearchResult(packing=_in_bulk(problem, fair, budget_seconds))
    kept = undominated(problem)
    fewer = problem.only(kept)
    if not small_enough(fewer):
        best = _in_bulk(fewer, fair, budget_seconds)
        return SearchResult(packing=on_all_offers(best, kept))
    seeds = list(candidates(fewer, fair))
    best = _packed(fewer, fair, seeds)
    search_result = _best_of_searches(fewer, fair, seeds, best, budget_seconds)
    return replace(search_result, packing=on_all_offers(search_result.packing, kept))


def _in_bulk(problem: Problem, fair: FairPrices, budget_seconds: float) -> Packing:
    """Return a packing of many items: by patterns of their shapes, or else by first fit."""
    shaped = by_shapes(problem, fair, FOR_SHAPES * budget_seconds)
    if shaped is None:
        return _packed(problem, fair, list(candidates(problem, fair)))
    shaped = right_size(problem, shaped)
    near = shaped.cost(problem) <= _NEAR * float(fair.items @ problem.counts)
    if near and not any(shortfall(problem, shaped)):
        return shaped
    return _packed(problem, fair, [shaped, *candidates(problem, fair)])


def _best_of_searches(
    problem: Problem, fair: FairPrices, seeds: list[Packing], best: Packing, budget_seconds: float
) -> SearchResult:
    """Return the best of all searches: over sets of nodes if pods are few, and over patterns."""
    if best.cost(problem) <= lower_bound(problem, fair):
        return SearchResult(packing=best)
    for_sets = Effort(FOR_SETS * budget_seconds)
    proven = _cheapest_set(problem, best, seeds, for_sets)
    if proven is not None:
        best = proven.packing
        if best.cost(problem) <= proven.nano_usd_least:
            return SearchResult(packing=best, optimal=True)
        budget_seconds = AFTER_SETS * budget_seconds + max(0.0, for_sets.seconds)
    improved = improve(problem, seeds, budget_seconds)
    return SearchResult(
        packing=cheapest(problem, [best, improved.packing]),
        worth=improved.worth,
        settled=improved.settled,
        divisible=improved.divisible,
        nano_usd_least=None if proven is None else proven.nano_usd_least,
    )


def _cheapest_set(
    problem: Problem, best: Packing, seeds: list[Packing], effort: Effort
) -> CheapestSet | None:
    """Return the cheapest set of nodes for few pods; None for many, or if limits leave some."""
    if not suits(problem) or any(shortfall(problem, best)):
        return None
    divisible = assignment_bound(problem)
    if divisible is None:
        return None
    return cheapest_set(problem, best, seeds, divisible, effort)


def cheapest(problem: Problem, packings: Iterable[Packing]) -> Packing:
    """Return the packing with the fewest pods left, the least cost, the fewest nodes."""
    return min(
        packings,
        key=lambda p: (shortfall(problem, p), p.cost(problem), len(p.bins)),
    )


def by_priority(problem: Problem, fair: FairPrices, nano_usd_most: int | None = None) -> Packing:
    """Return a packing that serves higher priorities first, for when not everything can be bought.

    Args:
        problem: What to pack.
        fair: The worth of its pods and resources.
        nano_usd_most: No node above this price is bought; None for no limit.
    """
    base = item_order(problem, fair.items)
    order = sorted(base, key=lambda i: -problem.items[i].pod_class.spec.priority)
    offers = best_offers(problem, fair.weights, None)
    if nano_usd_most is not None:
        offers = {i: each[problem.costs[each] <= nano_usd_most] for i, each in offers.items()}
    return _sized(problem, order, offers)


def within(problem: Problem, packing: Packing, limits: PurchaseLimits) -> Packing:
    """Return the packing with only as many nodes as the limits allow.

    Those with the highest priorities come first, then those with the most pods, per dollar if money
    is short.
    """
    money, nodes, costs = limits.nano_usd_per_hour, limits.nodes, problem.costs[packing.bins]
    over_money = money is not None and packing.spent(problem) > money
    if not over_money and (nodes is None or len(packing.bins) <= nodes):
        return packing
    cost = np.maximum(costs, 1) if over_money else np.ones_like(costs)
    keep: list[int] = []
    for node in _ranked(problem, packing, cost):
        if limits.allows(int(costs[node])):
            limits = limits.less(int(costs[node]), 1)
            keep.append(node)
    return packing.only(np.array(sorted(keep), dtype=np.int64))


def refilled(problem: Problem, packing: Packing) -> Packing:
    """Return the nodes of a packing with the pods of higher priorities put on them first."""
    priorities = np.array([i.pod_class.spec.priority for i in problem.items], dtype=np.int64)
    amounts = np.zeros((len(packing.bins), len(problem.items)), dtype=np.int64)
    highest = sorted(set(priorities.tolist()), reverse=True)[:_LEVELS_MAX]
    for level in highest:
        counts = np.where(priorities >= level, problem.counts, 0)
        top_up(problem, packing.bins, amounts, counts)
    top_up(problem, packing.bins, amounts, problem.counts)
    return Packing(bins=packing.bins, amounts=amounts)


def _ranked(problem: Problem, packing: Packing, cost: IntArray) -> Sequence[int]:
    """Return the nodes by their highest priority, then by pods per unit of `cost`.

    Pods of that priority are counted first, and all pods if these are equal.
    """
    priorities = np.array([i.pod_class.spec.priority for i in problem.items], dtype=np.int64)
    nodes, pods = packing.contents.nodes, packing.contents.pods
    of_entry = priorities[packing.contents.items]
    highest = np.full(len(packing.bins), np.iinfo(np.int64).min)
    np.maximum.at(highest, nodes, of_entry)
    urgent = np.where(of_entry == highest[nodes], pods, 0)
    rates = [np.bincount(nodes, each, minlength=len(cost)) / cost for each in (pods, urgent)]
    order = np.lexsort((np.arange(len(highest)), -rates[0], -rates[1], -highest))
    return [int(node) for node in order]
