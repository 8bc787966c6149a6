"""Moves the pods of every bought node to the cheapest offer that still holds them."""

import numpy as np

from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.placement.arrays import UNLIMITED, BoolArray, IntArray


def right_size(problem: Problem, packing: Packing) -> Packing:
    """Return the same nodes, each of the cheapest offer that takes all its pods, within limits."""
    if not len(packing.bins):
        return packing
    order = np.lexsort((np.arange(len(problem.prices)), problem.prices))
    holds = _large_enough(problem, packing) & _allowed(problem, packing)
    holds[np.arange(len(packing.bins)), packing.bins] = True
    holds = holds[:, order]
    if (problem.limits >= UNLIMITED).all():
        return packing.on_offers(order[holds.argmax(axis=1)])
    return packing.on_offers(_limited(problem, packing, order, holds))


def _limited(problem: Problem, packing: Packing, order: IntArray, holds: BoolArray) -> IntArray:
    """Return the offers node by node, the most expensive first, as offers with limits run out."""
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
    """Return (nodes, offers) whether the offer holds the node's pods, by resources alone."""
    load = _load(problem, packing)
    vectors, at = np.unique(problem.vectors, axis=0, return_inverse=True)
    fits = np.ones((len(load), len(vectors)), dtype=np.bool_)
    for dimension in range(load.shape[1]):
        asked = load[:, dimension]
        if asked.any():
            fits &= (asked[:, None] <= vectors[None, :, dimension]) | (asked == 0)[:, None]
    fits = fits[:, at.reshape(-1)]
    if problem.inflated:
        _let_single_pods_fit(problem, packing, fits)
    return fits


def _load(problem: Problem, packing: Packing) -> IntArray:
    """Return (nodes, dimensions) what the pods of each node take, inflated as worst."""
    contents = packing.contents
    needs = problem.needs.max(axis=1) if problem.inflated else problem.needs[:, 0, :]
    load = np.zeros((len(packing.bins), needs.shape[1]), dtype=np.int64)
    for dimension in range(needs.shape[1]):
        taken = needs[contents.items, dimension] * contents.pods
        np.add.at(load[:, dimension], contents.nodes, taken)
    return load


def _let_single_pods_fit(problem: Problem, packing: Packing, fits: BoolArray) -> None:
    """Allow a pod alone on a node with no more than its requests: inflation is capped for it."""
    contents = packing.contents
    pods = np.zeros(len(packing.bins), dtype=np.int64)
    np.add.at(pods, contents.nodes, contents.pods)
    alone = pods[contents.nodes] == 1
    fits[contents.nodes[alone]] |= problem.slots[contents.items[alone]] > 0


def _allowed(problem: Problem, packing: Packing) -> BoolArray:
    """Return (nodes, offers) whether all pods may use the offer, eight offers to a byte."""
    contents = packing.contents
    masks = np.packbits(problem.slots > 0, axis=1)
    starts = np.searchsorted(contents.nodes, np.arange(len(packing.bins)))
    bits = np.bitwise_and.reduceat(masks[contents.items], starts, axis=0)
    count = len(problem.prices)
    return np.unpackbits(bits, axis=1, count=count).astype(np.bool_)
