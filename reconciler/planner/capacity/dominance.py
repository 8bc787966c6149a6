"""Offers that another one beats in every way need not be looked at."""

import numpy as np

from reconciler.planner.capacity.problem import Packing, Problem
from reconciler.planner.placement.arrays import UNLIMITED, IntArray


def undominated(problem: Problem) -> IntArray:
    """Numbers of the offers worth considering, in order.

    An offer goes when another, of which any number may be bought, costs no more, holds no less of
    anything and takes every item that it takes; of equals the first stays.
    """
    prices, vectors = problem.prices, problem.vectors
    number = np.arange(len(prices))
    beaten = np.zeros(len(prices), dtype=np.bool_)
    for offer in number:
        better = (prices <= prices[offer]) & (problem.limits >= UNLIMITED)
        better &= (vectors >= vectors[offer]).all(axis=1)
        better &= (problem.slots >= problem.slots[:, offer : offer + 1]).all(axis=0)
        equal = (prices == prices[offer]) & (vectors == vectors[offer]).all(axis=1)
        equal &= (problem.slots == problem.slots[:, offer : offer + 1]).all(axis=0)
        better &= ~equal | (number < offer)
        beaten[offer] = bool(better.any())
    return number[~beaten & problem.useful()]


def on_all_offers(packing: Packing, kept: IntArray) -> Packing:
    """A packing over the kept offers, in the numbers of all."""
    return packing.on_offers(kept[packing.bins])
