"""Giving every bought node the cheapest offer that still holds its pods."""

import numpy as np

from reconciler.planner.capacity.problem import Packing, Problem
from reconciler.planner.placement.arrays import UNLIMITED, BoolArray, IntArray


def right_size(problem: Problem, packing: Packing) -> Packing:
    """The same nodes, each on the cheapest offer that takes all its pods, within the limits."""
    if not len(packing.bins):
        return packing
    order = np.lexsort((np.arange(len(problem.prices)), problem.prices))
    holds = _large_enough(problem, packing)[:, order] & _allowed(problem, packing)[:, order]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    holds[np.arange(len(packing.bins)), rank[packing.bins]] = True
    if (problem.limits >= UNLIMITED).all():
        return Packing(bins=order[holds.argmax(axis=1)], amounts=packing.amounts)
    return Packing(bins=_limited(problem, packing, order, holds), amounts=packing.amounts)


def _limited(problem: Problem, packing: Packing, order: IntArray, holds: BoolArray) -> IntArray:
    """Node by node, the dearest first, as offers with limits run out."""
    left = problem.limits - np.bincount(packing.bins, minlength=len(problem.prices))
    chosen = packing.bins.copy()
    for node in np.argsort(-problem.prices[packing.bins], kind="stable"):
        now = chosen[node]
        for offer in order[holds[node].nonzero()[0]]:
            if problem.prices[offer] >= problem.prices[now]:
                break
            if left[offer] > 0:
                left[offer] -= 1
                left[now] += 1
                chosen[node] = offer
                break
    return chosen


def _large_enough(problem: Problem, packing: Packing) -> BoolArray:
    """(nodes, offers): the offer holds the node's pods, by resources alone."""
    dimensions = problem.vectors.shape[1]
    load = np.zeros((len(packing.bins), dimensions), dtype=np.int64)
    uncapped = problem.needs.max(axis=1) if problem.inflated else problem.needs[:, 0, :]
    for dimension in range(dimensions):
        load[:, dimension] = packing.amounts @ uncapped[:, dimension]
    vectors, at = np.unique(problem.vectors, axis=0, return_inverse=True)
    fits = np.ones((len(load), len(vectors)), dtype=np.bool_)
    for dimension in range(dimensions):
        asked = load[:, dimension]
        if asked.any():
            fits &= (asked[:, None] <= vectors[None, :, dimension]) | (asked == 0)[:, None]
    fits = fits[:, at.reshape(-1)]
    if problem.inflated:
        _let_single_pods_fit(problem, packing, fits)
    return fits


def _let_single_pods_fit(problem: Problem, packing: Packing, fits: BoolArray) -> None:
    """A pod alone on a node needs no more than its requests: inflation is capped for it."""
    alone = (packing.amounts.sum(axis=1) == 1).nonzero()[0]
    if len(alone):
        items = packing.amounts[alone].argmax(axis=1)
        fits[alone] |= problem.slots[items] > 0


def _allowed(problem: Problem, packing: Packing) -> BoolArray:
    """(nodes, offers): every item on the node may use the offer; few distinct masks exist."""
    masks: dict[bytes, int] = {}
    of_item = [masks.setdefault((row > 0).tobytes(), len(masks)) for row in problem.slots]
    held = np.zeros((len(packing.bins), len(masks)), dtype=np.float32)
    present = packing.amounts > 0
    kinds = np.array(of_item, dtype=np.int64)
    for kind in range(len(masks)):
        held[:, kind] = present[:, kinds == kind].any(axis=1)
    forbidden = np.array([~np.frombuffer(mask, dtype=np.bool_) for mask in masks], dtype=np.float32)
    return np.asarray(held @ forbidden == 0)
