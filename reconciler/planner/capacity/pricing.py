"""What a node may hold that is worth more than it costs: patterns for all offers at once."""

import numpy as np

from reconciler.planner.capacity.problem import Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray

MIXES = 9
"""Item orders by worth per share of CPU and memory mixed, from all CPU to all memory."""
SHAKEN = 6
"""Further orders with the worth shaken a little: greedy filling escapes its own habits."""
_SHAKE = 0.25


def orders(problem: Problem, worth: FloatArray) -> IntArray:
    """(orders, items): items with worth, best first, by several measures of size."""
    wanted = ((worth > 0) & (problem.counts > 0)).nonzero()[0]
    typical = np.maximum(np.median(problem.vectors, axis=0), 1)
    share = problem.needs[wanted].min(axis=1) / typical
    first, second = share[:, 0], share[:, 1]
    sizes = [m * first + (1 - m) * second for m in np.linspace(0, 1, MIXES)]
    sizes.append(share.max(axis=1))
    rates = [worth[wanted] / np.maximum(size, 1e-9) for size in sizes]
    chance = np.random.default_rng(len(wanted))
    middle = rates[MIXES // 2]
    rates += [middle * chance.uniform(1 - _SHAKE, 1 + _SHAKE, len(wanted)) for _ in range(SHAKEN)]
    return wanted[np.argsort(-np.array(rates), axis=1, kind="stable")]


def greedy_patterns(problem: Problem, item_orders: IntArray) -> tuple[IntArray, IntArray]:
    """Every offer filled in every order, as many of each item as fit.

    Returns:
        Offer per pattern, and (patterns, items) amounts; demand and caps per node are respected.
    """
    count, offers = len(item_orders), len(problem.prices)
    room = np.broadcast_to(problem.vectors, (count, *problem.vectors.shape)).copy()
    held = np.zeros((count, offers, len(problem.caps)), dtype=np.int64)
    amounts = np.zeros((count, offers, len(problem.items)), dtype=np.int64)
    line = np.arange(count)
    asked = np.asarray(np.any(problem.needs, axis=(0, 1))).nonzero()[0]
    for items in item_orders.T:
        needs = problem.needs[items]
        most = np.minimum(problem.slots[items], problem.counts[items][:, None])
        for column in asked:
            need = needs[:, :, column]
            fits = np.where(need > 0, room[:, :, column] // np.maximum(need, 1), most)
            np.minimum(most, fits, out=most)
        for group in problem.membership[items].any(axis=0).nonzero()[0]:
            member = problem.membership[items, group][:, None]
            allowed = np.maximum(problem.caps[group] - held[:, :, group], 0)
            np.minimum(most, np.where(member, allowed, most), out=most)
            held[:, :, group] += np.where(member, np.maximum(most, 0), 0)
        np.maximum(most, 0, out=most)
        room -= needs * most[:, :, None]
        amounts[line, :, items] = most
    return np.tile(np.arange(offers), count), amounts.reshape(count * offers, -1)
