"""Fair prices of single pods turned into a proven bound (Farley, 1990)."""

import numpy as np

from reconciler.planner.capacity.patterns.knapsack import Knapsacks
from reconciler.planner.capacity.patterns.knapsack_search import fill
from reconciler.planner.capacity.problem.effort import (
    SECONDS_PER_AMOUNT,
    SECONDS_PER_LEVEL,
    SECONDS_PER_RELAXED_PAIR,
    Effort,
)
from reconciler.planner.capacity.problem.problem import Problem
from reconciler.planner.placement.arrays import FloatArray

MARGIN = 2e-4
"""Nodes that may hold at most this much more than they cost, relatively, are not searched
further."""
_WIDER = 3
"""The work of a search at the next width, in multiples of this one's."""
WIDTHS = (60, 240, 960)
"""Widths of searches one after the other; wider ones only for the offers that limit the bound."""
TOWARDS = (0.8, 1.0)
"""Shares of the worths in their mix with steadier ones."""


def proven_bound(
    problem: Problem,
    worth: FloatArray,
    known: float,
    effort: Effort,
    steady: FloatArray | None = None,
) -> float:
    """Return a lower bound on the cost of covering all items, from any worth per pod.

    If no node can hold pods worth more than `r` times its price, pods worth W in all cost at least
    W / r. Limits per offer are left out: they only add cost.

    What a node holds at most is convex in the worths: when they are mixed with worths that are fair
    already, `r` falls faster than W (Wentges, 1997), and a node that holds slightly too much is
    settled sooner.

    Args:
        problem: What has to be served.
        worth: (items,) nano-USD per pod.
        known: A bound already proven: nothing is done if this one cannot exceed it.
        effort: The budget of the proof.
        steady: Another `worth`, closer to fair.
    """
    if float(worth @ problem.counts) <= known:
        return 0.0
    knapsacks = Knapsacks(problem)
    best = 0.0
    for share in (1.0,) if steady is None else TOWARDS:
        mixed = worth if steady is None else share * worth + (1 - share) * steady
        if effort.left:
            best = max(best, _scaled(problem, knapsacks, mixed, max(known, best), effort))
    return best


def _scaled(
    problem: Problem, knapsacks: Knapsacks, worth: FloatArray, known: float, effort: Effort
) -> float:
    """Return the worth of all pods, scaled down by what nodes may hold too much."""
    total = float(worth @ problem.counts)
    prices = np.maximum(problem.prices, 1).astype(np.float64)
    ratios = np.full(len(prices), np.inf)
    tried = 0
    for width in WIDTHS:
        among = (ratios > 1 + MARGIN).nonzero()[0]
        if not len(among) or effort.seconds < SECONDS_PER_AMOUNT * tried * _WIDER:
            break
        fill_result = fill(knapsacks, worth, prices, margin=MARGIN, width=width, among=among)
        tried = fill_result.tried
        effort.spend(SECONDS_PER_RELAXED_PAIR * problem.slots.size)
        effort.spend(SECONDS_PER_LEVEL * fill_result.levels + SECONDS_PER_AMOUNT * tried)
        ratios = np.minimum(ratios, fill_result.most / prices)
        values = fill_result.amounts @ worth / prices[fill_result.offers]
        if total / max(1.0, float(values.max(initial=1.0))) <= known:
            break
    return total / max(1.0, float(ratios.max()) * (1 + 1e-9))
