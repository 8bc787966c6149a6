"""The cheapest packing of a small problem, by exhaustive search.

Most scale-ups are for a handful of pods, where fast packings may be off by a whole node. Dynamic
programming over how many pods of each item are left is exact and takes milliseconds there.
"""

import math

import numpy as np

from reconciler.planner.capacity.problem.node_rules import RulesOfItems
from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.placement.arrays import BoolArray, IntArray

STATES_MAX = 32_768
"""The number of states: fifteen different pods, or some thousand equal ones."""
STATES_OF_MANY_OFFERS_MAX = 1_024
OFFERS_TIMES_STATES_MAX = 131_072
"""States examined to find which sets of pods fit on a node, about 20 ms."""
WORK_MAX = 6_000_000
"""Sets that fit on a node times states that hold them, at most: about 50 ms."""
_UNREACHED_PRICE = 2**62


def exact(problem: Problem) -> Packing | None:
    """Return the cheapest packing of all items that any offer takes; None if it cannot be found.

    It cannot be if the problem is too large or too much work, or if the cheapest packing needs more
    nodes of an offer than its limit: then only a search that knows limits can tell.
    """
    served = problem.servable().nonzero()[0]
    radix = problem.counts[served] + 1
    count = math.prod(radix.tolist())
    if not len(served) or count > STATES_MAX:
        return None
    if count > max(STATES_OF_MANY_OFFERS_MAX, OFFERS_TIMES_STATES_MAX // len(problem.prices)):
        return None
    weights = np.concatenate(([1], np.cumprod(radix)))[:-1]
    states = np.arange(count, dtype=np.int64)[:, None] // weights % radix
    prices, offers = _cheapest_offers(problem, served, states)
    chosen = _solve(states, prices)
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
    """Return per set of pods the cheapest offer that holds it on one node, and its price."""
    prices = np.full(len(states), _UNREACHED_PRICE, dtype=np.int64)
    offers = np.zeros(len(states), dtype=np.int64)
    apart = _within_caps(problem, served, states)
    if problem.rules:
        apart &= RulesOfItems([problem.items[i].rules for i in served.tolist()]).allow(states)
    for offer in np.lexsort((np.arange(len(problem.prices)), -problem.prices)):
        load = states @ problem.needs[served, offer, :]
        holds = apart & (load <= problem.vectors[offer]).all(axis=1)
        holds &= ~(states[:, problem.slots[served, offer] <= 0] > 0).any(axis=1)
        prices[holds] = problem.prices[offer]
        offers[holds] = offer
    return prices, offers


def _within_caps(problem: Problem, served: IntArray, states: IntArray) -> BoolArray:
    """Return the sets of pods that no hostname rule keeps off one node."""
    if not len(problem.caps):
        return np.ones(len(states), dtype=np.bool_)
    held = states @ problem.membership[served].astype(np.int64)
    return np.asarray((held <= problem.caps).all(axis=1))


def _solve(states: IntArray, prices: IntArray) -> IntArray | None:
    """Return the nodes, each as the index of its set of pods, that serve everything at least cost.

    Some node has a pod of a state's last item, so only sets with one are tried: for all states with
    that many pods of the item at once, as they need only states with fewer. None if that is too
    much work.
    """
    last = states.shape[1] - 1 - (states > 0)[:, ::-1].argmax(axis=1)
    last[0] = -1
    ending = [(last == item).nonzero()[0] for item in range(states.shape[1])]
    sets = [numbers[prices[numbers] < _UNREACHED_PRICE] for numbers in ending]
    if sum(len(a) * len(b) for a, b in zip(ending, sets, strict=True)) > WORK_MAX:
        return None
    best = np.full(len(states), _UNREACHED_PRICE, dtype=np.int64)
    best[0] = 0
    choice = np.zeros(len(states), dtype=np.int64)
    for item, (numbers, tried) in enumerate(zip(ending, sets, strict=True)):
        amounts, in_tried = states[numbers, item], states[tried, item]
        for amount in range(1, int(states[-1, item]) + 1):
            among = numbers[amounts == amount]
            fitting = tried[in_tried <= amount]
            if len(among) < len(fitting):
                for state in among.tolist():
                    # Of the first item alone no fitting set has more than the state.
                    held = (states[fitting] <= states[state]).all(axis=1) if item else slice(None)
                    within = fitting[held]
                    if len(within):
                        costs = prices[within] + best[state - within]
                        least = costs.argmin()
                        best[state], choice[state] = costs[least], within[least]
                continue
            columns = np.ascontiguousarray(states[among].T)
            for each in fitting.tolist():
                taking = among[_at_least(columns, states[each])]
                costs = prices[each] + best[taking - each]
                better = costs < best[taking]
                best[taking[better]], choice[taking[better]] = costs[better], each
    if best[-1] >= _UNREACHED_PRICE:
        return None
    chosen = []
    left = len(states) - 1
    while left:
        chosen.append(int(choice[left]))
        left -= int(choice[left])
    return np.array(sorted(chosen), dtype=np.int64)


def _at_least(columns: IntArray, amounts: IntArray) -> BoolArray:
    """Return which of the states, given by item, have at least these amounts of every item."""
    first, *others = amounts.nonzero()[0].tolist()
    found: BoolArray = columns[first] >= amounts[first]
    for item in others:
        found &= columns[item] >= amounts[item]
    return found
