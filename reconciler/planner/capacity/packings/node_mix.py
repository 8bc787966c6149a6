"""The mix of nodes that the divisible problem asks for, filled by decreasing size.

First fit fills one node after the other, and ends with nodes that are full of one resource and
have others left. Where many pods differ, most of that is avoided by opening about as many nodes of
each offer as the linear program over resources asks for, and putting each pod, the largest first,
on the node that is left with the most of its scarcest resource. What finds no room is first-fitted.
"""

from collections.abc import Iterable

import numpy as np

from reconciler.planner.capacity.bounds.fair_prices import FairPrices, least_needs
from reconciler.planner.capacity.bounds.lp import cover
from reconciler.planner.capacity.packings.first_fit import best_offers, first_fit
from reconciler.planner.capacity.packings.right_size import right_size
from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.placement.arrays import BoolArray, FloatArray, IntArray

EXTRA = (0.0, 0.05)
"""How many more nodes than the program asks for are tried, relatively."""
FEW = 8
"""A mix with fewer nodes is also tried with smaller nodes, of which it takes at least this many."""
PROGRAM_MAX = 2_000_000
"""The approximate number of cells of the linear program.

Items that the same offers take are one kind in it.
"""
CELLS_MAX = 1_000_000
"""The most items x nodes; with more it takes longer than it is worth: a fifth of a second each
time."""
_LARGER = 1e-3
"""Added to the price of the smallest offer, relatively: of offers with equal value larger ones
are filled better, and the last node is exchanged for a smaller one anyway."""


def filled_mixes(problem: Problem, fair: FairPrices) -> Iterable[Packing]:
    """Yield packings of everything on mixes of nodes, each mix with and without `EXTRA` nodes.

    The size of a pod is the sum of its shares of a mean node of the mix.
    """
    needs = least_needs(problem)
    offers = best_offers(problem, fair.weights, None)
    for mix in _mixes(problem, needs):
        mean = mix @ problem.vectors / mix.sum()
        size = (needs / np.maximum(mean, 1)).sum(axis=1)
        order = np.argsort(-size, kind="stable")
        for extra in EXTRA:
            nodes = np.minimum(np.floor(mix * (1 + extra) + 1e-6).astype(np.int64), problem.limits)
            if int(nodes.sum()) * len(problem.items) > CELLS_MAX:
                return
            begun = _filled(problem, np.repeat(np.arange(len(nodes)), nodes), order)
            served = begun.served()
            rest = [item for item in order.tolist() if served[item] < problem.counts[item]]
            packing = first_fit(problem, rest, offers, begun) if rest else begun
            yield right_size(problem, packing)


def _mixes(problem: Problem, needs: IntArray) -> Iterable[FloatArray]:
    """Yield (offers,) numbers of nodes: the cheapest mix and, for few nodes, one of smaller ones.

    The fraction of a node that rounding adds is then one of a smaller node.
    """
    mix = _mix(problem, needs)
    if mix.any():
        yield mix
    if mix.sum() < FEW:
        total = problem.counts @ needs
        alone = (total / np.maximum(problem.vectors, 1)).max(axis=1)
        smaller = (alone >= FEW).nonzero()[0]
        found = np.zeros(len(problem.prices))
        if len(smaller) and _take_all(problem, smaller):
            found[smaller] = _mix(problem.only(smaller), needs)
        if found.any():
            yield found


def _take_all(problem: Problem, offers: IntArray) -> bool:
    """Return whether these offers take every item that any offer takes."""
    return bool((problem.slots[:, offers].any(axis=1) == problem.servable()).all())


def _mix(problem: Problem, needs: IntArray) -> FloatArray:
    """Return (offers,) how many nodes of each would be cheapest if pods and nodes were divisible.

    Requests are placed on offers that take the pods, each resource by itself; if that program would
    be too large, on any offers.
    """
    asked = (problem.counts @ needs).nonzero()[0]
    scale = np.maximum(problem.vectors[:, asked].max(axis=0), 1).astype(np.float64)
    room, wants = problem.vectors[:, asked] / scale, needs[:, asked] / scale
    prices = problem.prices / max(float(problem.prices.max()), 1.0)
    costs = prices * (1 + _LARGER * (1 - prices))
    takes, kind_of = np.unique(problem.slots > 0, axis=0, return_inverse=True)
    if len(takes) * room.size**2 > PROGRAM_MAX:
        return cover(costs, room.T, problem.counts @ wants)
    wanted = np.zeros((len(takes), len(asked)))
    np.add.at(wanted, kind_of.reshape(-1), wants * problem.counts[:, None])
    return _mix_of_kinds(costs, room, takes, wanted)


def _mix_of_kinds(
    costs: FloatArray, room: FloatArray, takes: BoolArray, wanted: FloatArray
) -> FloatArray:
    """Return (offers,) the cheapest nodes on which all kinds of pods find their resources.

    Columns are nodes per offer, then parts of a resource per feasible pair of kind and offer. Rows
    are kind x resource (all of it is placed), then offer x resource (not exceeded).

    Args:
        costs: (offers,).
        room: (offers, resources).
        takes: (kinds, offers) whether the offer takes the pods of the kind.
        wanted: (kinds, resources) the requests of the pods of a kind.
    """
    offers, resources = room.shape
    kind, offer = (np.repeat(each, resources) for each in takes.nonzero())
    parts = np.arange(len(kind))
    resource = parts % resources
    rows = np.zeros((wanted.size + room.size, offers + len(parts)))
    rows[kind * resources + resource, offers + parts] = 1.0
    rows[wanted.size + offer * resources + resource, offers + parts] = -1.0
    at = np.arange(room.size)
    rows[wanted.size + at, at // resources] = room.reshape(-1)
    least = np.concatenate([wanted.reshape(-1), np.zeros(room.size)])
    return cover(np.concatenate([costs, np.zeros(len(parts))]), rows, least)[:offers]


def _filled(problem: Problem, bins: IntArray, order: IntArray) -> Packing:
    """Return the pods placed on these nodes in this order, without nodes that have none."""
    room = problem.vectors[bins].copy()
    share = 1.0 / np.maximum(room, 1)
    held = np.zeros((len(bins), len(problem.caps)), dtype=np.int64)
    amounts = np.zeros((len(bins), len(problem.items)), dtype=np.int64)
    for item in order.tolist():
        if not any(problem.items[item].rules):
            _spread(problem, item, bins, room, share, held, amounts[:, item])
    used = np.asarray(amounts.any(axis=1))
    return Packing(bins=bins[used], amounts=amounts[used])


def _spread(
    problem: Problem,
    item: int,
    bins: IntArray,
    room: IntArray,
    share: FloatArray,
    held: IntArray,
    taken: IntArray,
) -> None:
    """Put the pods of an item on nodes, one on each, then another, until none has room.

    `room`, `held` and `taken` are updated.
    """
    left = int(problem.counts[item])
    asked = list(problem.items[item].pod_class.columns)
    needs = problem.needs[item][:, asked][bins]
    slots, groups = problem.slots[item][bins], problem.items[item].groups
    while left > 0:
        after = room[:, asked] - needs
        able: BoolArray = (after >= 0).all(axis=1) & (taken < slots)
        for group in groups:
            able &= held[:, group] < problem.caps[group]
        nodes = able.nonzero()[0]
        if not len(nodes):
            return
        if len(nodes) > left:
            scarcest = (after[nodes] * share[np.ix_(nodes, asked)]).min(axis=1)
            nodes = nodes[np.argsort(-scarcest, kind="stable")[:left]]
        taken[nodes] += 1
        room[np.ix_(nodes, asked)] = after[nodes]
        for group in groups:
            held[nodes, group] += 1
        left -= len(nodes)
