"""A proven lower bound on what serving the items can cost.

Resource weights w >= 0 with w·offer <= price for every offer make w·needs a fair price of a pod:
no set of nodes can hold pods worth more than it costs (LP duality; the weights are the duals of
the continuous covering problem). Everything left out (integrality, placement rules, limits) only
makes the true optimum more expensive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from reconciler.planner.capacity.bounds.lp import maximise
from reconciler.planner.capacity.problem.problem import Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray

_SAFETY = 1 - 1e-9
"""Subtracted from the weights so that floating-point rounding never raises the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FairPrices:
    """What a pod of each item is worth at the best offers' rates."""

    weights: FloatArray
    """(dimensions,) nano-USD per unit."""
    items: FloatArray
    """(items,) nano-USD per pod."""
    places: FloatArray
    """(groups,) nano-USD per place that the cap of a group leaves on a node."""


def least_needs(problem: Problem) -> IntArray:
    """Return (items, dimensions) the least that a pod takes on any of the offers that take it."""
    if not problem.inflated:
        served = problem.servable()[:, None]
        return np.where(served, problem.needs[:, 0, :], 0)
    masked = np.where(problem.slots[:, :, None] > 0, problem.needs, np.iinfo(np.int64).max)
    least = masked.min(axis=1)
    return np.asarray(np.where(problem.servable()[:, None], least, 0))


def fair_prices(problem: Problem, capped_groups: int = 0) -> FairPrices:
    """Return the resource weights that maximise the worth of all items together.

    Args:
        problem: What has to be served.
        capped_groups: How many groups' caps count as resources of a node: those that force the most
            nodes, for which a pod then pays in addition to its requests. The caps must hold.
    """
    groups = _most_forcing(problem, capped_groups)
    needs = np.column_stack([least_needs(problem), problem.membership[:, groups]]).astype(
        np.float64
    )
    needs[~problem.servable()] = 0
    offered = np.column_stack(
        [problem.vectors, np.broadcast_to(problem.caps[groups], (len(problem.prices), len(groups)))]
    )
    dimensions = problem.vectors.shape[1]
    places = np.zeros(len(problem.caps))
    total = problem.counts @ needs
    useful = problem.useful()
    if not useful.any() or not total.any():
        zero = np.zeros(dimensions)
        return FairPrices(weights=zero, items=np.zeros(len(problem.items)), places=places)
    scale = np.maximum(offered[useful].max(axis=0), 1).astype(np.float64)
    unit = float(max(problem.prices[useful].max(), 1))
    weights = maximise(total / scale, offered[useful] / scale, problem.prices[useful] / unit)
    weights = np.maximum(weights, 0.0) * unit / scale
    worth = offered[useful] @ weights
    excess = max(1.0, float((worth / np.maximum(problem.prices[useful], 1)).max()))
    weights = weights / excess * _SAFETY
    places[groups] = weights[dimensions:]
    return FairPrices(weights=weights[:dimensions], items=needs @ weights, places=places)


def _most_forcing(problem: Problem, count: int) -> IntArray:
    """Return the groups whose pods need the most nodes."""
    pods = problem.counts @ problem.membership
    nodes = -(-pods // np.maximum(problem.caps, 1))
    return np.argsort(-nodes, kind="stable")[:count]


def lower_bound(problem: Problem, prices: FairPrices, credit: float | None = None) -> int:
    """Return the least that the items can cost.

    Every cost is a sum of offer prices, so the bound rises to the next multiple of their greatest
    common divisor.

    Args:
        problem: What has to be served.
        prices: Fair prices of its items.
        credit: The worth of room that they might use instead; None if there is none. A single pod
            in such room may save a whole node, whatever its own worth.
    """
    total = float((prices.items * problem.counts)[problem.servable()].sum())
    total = max(total, _most_expensive_single(problem)) if credit is None else total - credit
    return round_up(total, [int(p) for p in problem.prices])


def _most_expensive_single(problem: Problem) -> int:
    """Return the highest price among items of the cheapest node that takes the item."""
    highest = 0
    for i in range(len(problem.items)):
        taking = problem.slots[i] > 0
        if taking.any():
            highest = max(highest, int(problem.prices[taking].min()))
    return highest


def round_up(total: float, prices: Sequence[int]) -> int:
    """Return the least sum of these prices that may be reached from `total` on, by divisibility."""
    step = gcd(*prices) if prices else 0
    if total <= 0:
        return 0
    if step <= 0:
        return int(total)
    return -(-int(total) // step) * step
