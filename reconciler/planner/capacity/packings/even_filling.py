"""Equal nodes filled evenly: for many small pods often the fewest nodes possible.

A fixed number of nodes of one offer is filled by decreasing size, each pod on the node with the
least use of the scarcest resource (Graham's LPT rule), so that free room is spread thinly instead
of being lost on each node. First fit in bulk fills nodes one after the other and ends with nodes
full in one resource only.
"""

import numpy as np

from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.placement.arrays import IntArray

_CELLS_MAX = 200_000
"""The most items x nodes; with more it takes longer than it is worth."""


def levelled(problem: Problem, offer: int, nodes: int) -> Packing | None:
    """Return a packing of everything on `nodes` nodes of one offer; None if that is impossible.

    It is with rules per node, limits, pods that the offer does not take, or if even filling fails.
    """
    if (
        len(problem.caps)
        or problem.rules
        or nodes > problem.limits[offer]
        or nodes * len(problem.items) > _CELLS_MAX
    ):
        return None
    needs, offered = problem.needs[:, offer, :], problem.vectors[offer]
    total = needs.T @ problem.counts
    if not (problem.slots[:, offer] > 0).all() or (total > offered * nodes).any():
        return None
    scarcest = int((total / np.maximum(offered, 1)).argmax())
    if not (needs[:, scarcest] > 0).all():
        return None
    amounts = _filled(problem.counts, needs, offered, nodes, scarcest)
    if amounts is None:
        return None
    return Packing(bins=np.full(nodes, offer, dtype=np.int64), amounts=amounts)


def _filled(
    counts: IntArray, needs: IntArray, offered: IntArray, nodes: int, scarcest: int
) -> IntArray | None:
    """Return (nodes, items) pods; None if some find no room."""
    unit = int(np.gcd.reduce(needs[:, scarcest]))
    room = np.repeat(offered[None, :], nodes, axis=0)
    amounts = np.zeros((nodes, len(counts)), dtype=np.int64)
    for item in np.argsort(-needs[:, scarcest], kind="stable"):
        asked = needs[item].nonzero()[0]
        most = (room[:, asked] // needs[item, asked]).min(axis=1)
        if most.sum() < counts[item]:
            return None
        load = (offered[scarcest] - room[:, scarcest]) // unit
        taken = _level_filled(load, int(needs[item, scarcest]) // unit, most, int(counts[item]))
        room -= taken[:, None] * needs[item]
        amounts[:, item] = taken
    return amounts


def _level_filled(load: IntArray, size: int, most: IntArray, count: int) -> IntArray:
    """Return how many of `count` pods each node takes when each goes to the least loaded node.

    Pods that go one by one to the lowest node are those that begin at the lowest levels: the
    highest level at which not more than `count` of them begin is found by bisection. `most` adds
    up to at least `count`.
    """
    low, high = -1, int(load.max()) + size * count
    while low < high:
        level = (low + high + 1) // 2
        if int(_begun(load, size, most, level).sum()) <= count:
            low = level
        else:
            high = level - 1
    taken = _begun(load, size, most, low)
    next_up = ((taken < most) & (load + taken * size == low + 1)).nonzero()[0]
    taken[next_up[: count - int(taken.sum())]] += 1
    return taken


def _begun(load: IntArray, size: int, most: IntArray, level: int) -> IntArray:
    """Return pods per node that begin at the level or below."""
    return np.asarray(np.clip((level - load) // size + 1, 0, most))
