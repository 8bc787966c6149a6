"""Many classes of few shapes: patterns are searched for shapes, then pods are dealt out to them.

If rules force many nodes (pods that must be apart), the room next to those pods decides the cost.
First fit fills it badly, and a search over thousands of items takes too long. What a pod takes and
which forcing rules it obeys is its *shape*: there are few of these. Zones and the other rules on
hostnames are applied when pods are dealt out; what is left is packed by first fit.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reconciler.planner.capacity.bounds.fair_prices import FairPrices, fair_prices
from reconciler.planner.capacity.packings.first_fit import best_offers, first_fit, item_order
from reconciler.planner.capacity.packings.right_size import right_size
from reconciler.planner.capacity.patterns.columns import ITEMS_MAX, improve
from reconciler.planner.capacity.patterns.pattern_dealing import NodeSizes, ShapePacking, deal_out
from reconciler.planner.capacity.problem.node_rules import NO_RULES
from reconciler.planner.capacity.problem.problem import Item, Packing, Problem, state_problem
from reconciler.planner.placement.arrays import UNLIMITED, IntArray

CROWD_MAX = 16
"""Pods per node that rules force: with more, nodes are large and easy to fill."""
GROUPS_MAX = 32
"""The most rules that force nodes: each has shapes of its own."""
FORCING = 0.05
"""A rule counts as forcing from this share of the most forced nodes; others are left to the
dealing."""
LADDER = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.5)
"""The sizes of nodes that are tried, in multiples of what there is per forced node."""


def by_shapes(problem: Problem, fair: FairPrices, budget_seconds: float) -> Packing | None:
    """Return a packing by patterns of shapes.

    None if no rule forces nodes or there are many shapes.
    """
    groups = _forcing(problem)
    if not 0 < len(groups) <= GROUPS_MAX:
        return None
    shape_of, firsts = _shapes(problem, groups)
    if len(firsts) > ITEMS_MAX:
        return None
    nodes = max(_forced_nodes(problem, group) for group in groups)
    if int(problem.counts.sum()) > CROWD_MAX * nodes:
        return None
    sizes = _sizes_to_try(problem, nodes)
    stated = _stated(problem, sizes, groups, shape_of, firsts)
    order = item_order(stated, fair_prices(stated).items)
    seed = first_fit(stated, order, best_offers(stated, fair.weights))
    found = improve(stated, [right_size(stated, seed)], budget_seconds).packing
    begun = deal_out(problem, ShapePacking(packing=found, sizes=sizes, shape_of=shape_of))
    left = set((problem.counts > begun.served()).nonzero()[0].tolist())
    if not left:
        return begun
    rest = [item for item in item_order(problem, fair.items) if item in left]
    return first_fit(problem, rest, best_offers(problem, fair.weights, among=rest), begun)


def _forced_nodes(problem: Problem, group: int) -> int:
    pods = int(problem.counts[problem.membership[:, group]].sum())
    return -(-pods // int(problem.caps[group]))


def _forcing(problem: Problem) -> list[int]:
    """Return the caps that force the most nodes, and those that force nearly as many."""
    forced = [_forced_nodes(problem, group) for group in range(len(problem.caps))]
    return [group for group, nodes in enumerate(forced) if nodes > FORCING * max(forced)]


def _shapes(problem: Problem, groups: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Return (items,) the shape of each item, and (shapes,) the first item of each shape."""
    static = [item.pod_class.static for item in problem.items]
    requests = np.array([item.pod_class.requests for item in problem.items], dtype=np.int64)
    key = np.column_stack([static, problem.membership[:, list(groups)], requests])
    _, firsts, shape_of = np.unique(key, axis=0, return_index=True, return_inverse=True)
    return shape_of.reshape(-1), firsts


def _sizes_to_try(problem: Problem, nodes: int) -> NodeSizes:
    """Return sizes of nodes about as large as what each is to hold, with their offers."""
    sized = np.column_stack([problem.prices, problem.vectors])
    _, firsts, size_of = np.unique(sized, axis=0, return_index=True, return_inverse=True)
    asked = problem.needs.max(axis=1) if problem.inflated else problem.needs[:, 0, :]
    mean = problem.counts @ asked / nodes
    largest = asked.max(axis=0)
    vectors = problem.vectors[firsts]
    chosen = {
        int(holding[problem.prices[firsts[holding]].argmin()])
        for load in (largest, *(share * mean for share in LADDER))
        if len(holding := (vectors >= load).all(axis=1).nonzero()[0])
    }
    chosen_sizes = sorted(chosen)
    return NodeSizes(
        firsts=firsts[chosen_sizes],
        offers=tuple((size_of.reshape(-1) == size).nonzero()[0] for size in chosen_sizes),
    )


def _stated(
    problem: Problem, sizes: NodeSizes, groups: Sequence[int], shape_of: IntArray, firsts: IntArray
) -> Problem:
    """Return the problem with shapes instead of items and sizes instead of offers."""
    counts = np.bincount(shape_of, weights=problem.counts).astype(np.int64)
    slots = np.zeros((len(firsts), len(sizes.offers)), dtype=np.int64)
    for size, among in enumerate(sizes.offers):
        np.maximum.at(slots[:, size], shape_of, problem.slots[:, among].max(axis=1))
    items: list[Item] = [
        replace(
            problem.items[first],
            count=int(counts[shape]),
            slots=slots[shape],
            groups=tuple(i for i, g in enumerate(groups) if problem.membership[first, g]),
            rules=NO_RULES,
        )
        for shape, first in enumerate(firsts.tolist())
    ]
    offers = [
        replace(problem.offers[first], most=min(UNLIMITED, int(problem.limits[among].sum())))
        for first, among in zip(sizes.firsts.tolist(), sizes.offers, strict=True)
    ]
    return state_problem(offers, items, [int(problem.caps[g]) for g in groups]).as_compared()
