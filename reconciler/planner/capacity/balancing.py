"""Distributes new nodes over similar fleets, so that these become equally large.

Source: cluster-autoscaler/processors/nodegroupset (`--balance-similar-node-groups`).
"""

from collections.abc import Sequence

import numpy as np

from reconciler.planner.capacity.problem.problem import Offer, Packing, Problem
from reconciler.planner.placement.arrays import IntArray

RESOURCES_DIFFER_MOST = 0.05
"""Relative difference up to which resources of two nodes count as similar.

Nodes of one instance type differ by some MiB of memory.
"""


def similar_offers(offers: Sequence[Offer], number: int) -> list[int]:
    """Return the indices of offers with nodes similar to those of offer `number`, and its own."""
    one = offers[number]
    if one.balanced is None:
        return [number]
    return [i for i, other in enumerate(offers) if i == number or _similar(one, other)]


def _similar(one: Offer, other: Offer) -> bool:
    mine, theirs = one.balanced, other.balanced
    if mine is None or theirs is None or mine.likeness != theirs.likeness:
        return False
    if mine.any_resources:
        return True
    most = np.maximum(one.vector, other.vector)
    return bool((np.abs(one.vector - other.vector) <= most * RESOURCES_DIFFER_MOST).all())


def evened_out(problem: Problem, packing: Packing) -> Packing:
    """Return the same nodes, each of a similar fleet and in a place where its pods may run.

    Each goes to the fleet that is smallest at that point. The result may cost more than the
    packing, as similar fleets need not have the same price.
    """
    if all(offer.balanced is None for offer in problem.offers):
        return packing
    bins = packing.bins.copy()
    settled: set[int] = set()
    for number in np.unique(packing.bins).tolist():
        alike = [i for i in similar_offers(problem.offers, number) if i not in settled]
        settled.update(alike)
        if len(alike) > 1:
            _even_out(problem, packing, alike, bins)
    return packing.on_offers(bins)


def _even_out(problem: Problem, packing: Packing, alike: list[int], bins: IntArray) -> None:
    """Note the new offers of the nodes of `alike` in `bins`; no node moves if one has no place."""
    nodes = np.isin(packing.bins, alike).nonzero()[0]
    may_go = [[i for i in alike if _takes(problem, packing, n, i)] for n in nodes.tolist()]
    size_of = {i: balanced.size for i in alike if (balanced := problem.offers[i].balanced)}
    left = {i: int(problem.limits[i]) for i in alike}
    chosen = np.zeros(len(nodes), dtype=np.int64)
    for place in sorted(range(len(nodes)), key=lambda n: len(may_go[n])):
        open_ones = [i for i in may_go[place] if left[i] > 0]
        if not open_ones:
            return
        best = min(open_ones, key=lambda i: (size_of[i], i))
        size_of[best] += 1
        left[best] -= 1
        chosen[place] = best
    bins[nodes] = chosen


def _takes(problem: Problem, packing: Packing, node: int, offer: int) -> bool:
    """Return whether a node of the offer takes the pods of a node of the packing."""
    if packing.bins[node] == offer:
        return True
    contents = packing.contents
    begin, end = np.searchsorted(contents.nodes, (node, node + 1))
    items, pods = contents.items[begin:end], contents.pods[begin:end]
    if (problem.slots[items, offer] < pods).any():
        return False
    taken = (problem.needs[items, offer] * pods[:, None]).sum(axis=0)
    return bool((taken <= problem.vectors[offer]).all())


def prices_among_similar(offers: Sequence[Offer]) -> list[int]:
    """Return the price by which purchases are compared: of similar offers, that of the cheapest."""
    prices = [o.compared_nano_usd for o in offers]
    if all(o.balanced is None for o in offers):
        return prices
    return [min(prices[i] for i in similar_offers(offers, n)) for n in range(len(offers))]
