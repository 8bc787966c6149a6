"""Leaves out offers that another offer beats in every respect."""

import numpy as np

from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.placement.arrays import UNLIMITED, IntArray


def undominated(problem: Problem) -> IntArray:
    """Return the indices of the offers worth considering, in order.

    An offer is left out if another, of which any number may be bought, costs no more, holds no less
    of anything and takes every item that it takes; of equal ones the first stays.
    """
    prices, vectors, slots = problem.prices, problem.vectors, problem.slots
    number = np.arange(len(prices))
    beaten = np.zeros(len(prices), dtype=np.bool_)
    unlimited = problem.limits >= UNLIMITED
    seen: set[bytes] = set()
    for same, row in enumerate(np.column_stack([prices, vectors, slots.T])):
        beaten[same] = unlimited[same] and row.tobytes() in seen
        if unlimited[same]:
            seen.add(row.tobytes())
    for offer in (~beaten).nonzero()[0]:
        among = ((prices <= prices[offer]) & unlimited & ~beaten & (number != offer)).nonzero()[0]
        among = among[(vectors[among] >= vectors[offer]).all(axis=1)]
        if not len(among):
            continue
        better, own = slots[:, among], slots[:, offer : offer + 1]
        covers = (better >= own).all(axis=0)
        equal = (prices[among] == prices[offer]) & (vectors[among] == vectors[offer]).all(axis=1)
        equal &= (better == own).all(axis=0)
        beaten[offer] = bool((covers & (~equal | (among < offer))).any())
    return number[~beaten & problem.useful()]


def on_all_offers(packing: Packing, kept: IntArray) -> Packing:
    """Return a packing over the kept offers as one over all offers."""
    return packing.on_offers(kept[packing.bins])
