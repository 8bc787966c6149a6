"""The cheapest packing of a small problem, by trying everything once.

Most scale-ups are for a handful of pods, where fast packings may miss by a whole node. A dynamic
programme over how many pods of each item are left is exact and takes milliseconds there.
"""

import math

import numpy as np

from reconciler.planner.capacity.problem import Packing, Problem
from reconciler.planner.placement.arrays import BoolArray, IntArray

STATES_MAX = 1_024
"""Ten different pods, or a thousand equal ones; work grows with the square."""
_TOO_DEAR = 2**62


def exact(problem: Problem) -> Packing | None:
    """The cheapest packing of all items that any offer takes.

    None when the problem is too large, or when the cheapest packing needs more nodes of an offer
    than there may be: then only a search that knows limits can tell.
    """
    served = problem.servable().nonzero()[0]
    radix = problem.counts[served] + 1
    if not len(served) or math.prod(radix.tolist()) > STATES_MAX:
        return None
    weights = np.concatenate(([1], np.cumprod(radix)))[:-1]
    states = np.arange(int(np.prod(radix)), dtype=np.int64)[:, None] // weights % radix
    prices, offers = _cheapest_offers(problem, served, states)
    chosen = _solve(states, prices, weights)
    if chosen is None:
        return None
    bins = offers[chosen]
    if (np.bincount(bins, minlength=len(problem.limits)) > problem.limits).any():
        return None
    amounts = np.zeros((len(chosen), len(problem.items)), dtype=np.int64)
    amounts[:, served] = states[chosen]
    return Packing(bins=bins, amounts=amounts)


def _cheapest_offers(
    problem: Problem, served: IntArray, states: IntArray
) -> tuple[IntArray, IntArray]:
    """Per set of pods the cheapest offer that holds it on one node, and its price."""
    prices = np.full(len(states), _TOO_DEAR, dtype=np.int64)
    offers = np.zeros(len(states), dtype=np.int64)
    apart = _within_caps(problem, served, states)
    for offer in np.lexsort((np.arange(len(problem.prices)), -problem.prices)):
        load = states @ problem.needs[served, offer, :]
        holds = apart & (load <= problem.vectors[offer]).all(axis=1)
        holds &= ~(states[:, problem.slots[served, offer] <= 0] > 0).any(axis=1)
        prices[holds] = problem.prices[offer]
        offers[holds] = offer
    return prices, offers


def _within_caps(problem: Problem, served: IntArray, states: IntArray) -> BoolArray:
    """Sets of pods that no hostname rule keeps off one node."""
    if not len(problem.caps):
        return np.ones(len(states), dtype=np.bool_)
    held = states @ problem.membership[served].astype(np.int64)
    return np.asarray((held <= problem.caps).all(axis=1))


def _solve(states: IntArray, prices: IntArray, weights: IntArray) -> IntArray | None:
    """The nodes, each by the number of its set of pods, that serve everything at least cost.

    A state's last pod is on some node: only nodes with a pod of its last item are tried.
    """
    numbers = states @ weights
    usable = (prices < _TOO_DEAR).nonzero()[0][1:]
    best = np.full(len(states), _TOO_DEAR, dtype=np.int64)
    best[0] = 0
    choice = np.zeros(len(states), dtype=np.int64)
    for state in range(1, len(states)):
        last = int(states[state].nonzero()[0][-1])
        among = usable[: np.searchsorted(usable, state, side="right")]
        among = among[(states[among, last] > 0) & (states[among] <= states[state]).all(axis=1)]
        if len(among):
            costs = prices[among] + best[state - numbers[among]]
            winner = int(costs.argmin())
            best[state], choice[state] = costs[winner], among[winner]
    if best[-1] >= _TOO_DEAR:
        return None
    chosen = []
    left = len(states) - 1
    while left:
        chosen.append(int(choice[left]))
        left -= int(numbers[choice[left]])
    return np.array(sorted(chosen), dtype=np.int64)
