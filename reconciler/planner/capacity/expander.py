"""Expanders other than `cost`: one fleet is chosen for as many pods as it takes, then the next."""

import zlib
from dataclasses import replace

import numpy as np

from reconciler.planner.capacity.bounds.fair_prices import FairPrices, fair_prices
from reconciler.planner.capacity.packings.first_fit import first_fit, item_order
from reconciler.planner.capacity.patterns.rounding import top_up
from reconciler.planner.capacity.problem.problem import Packing, Problem, no_packing
from reconciler.planner.capacity.search import search
from reconciler.planner.placement.arrays import FloatArray, IntArray
from reconciler.planner.settings import Expander


def expand(problem: Problem, fair: FairPrices, expander: Expander) -> Packing:
    """Pack everything on the expander's first choice, the rest on its second, and so on."""
    order = item_order(problem, fair.items)
    preference = _preference(problem, order, expander)
    offers = {i: preference[problem.slots[i][preference] > 0] for i in range(len(problem.items))}
    return first_fit(problem, order, offers)


def by_fleet_priority(problem: Problem, budget_seconds: float) -> Packing:
    """Buy from the fleets of the highest priority at least cost, then from the next ones.

    Pods for which a lower priority would be bought first use the room on nodes bought before it.
    """
    bins: list[IntArray] = []
    amounts: list[IntArray] = []
    rest = problem
    priorities = np.array([offer.priority for offer in problem.offers], dtype=np.int64)
    for level in sorted(set(priorities.tolist()), reverse=True):
        offers = (priorities == level).nonzero()[0]
        part = rest.only(offers)
        part = replace(part, counts=np.where(part.servable(), part.counts, 0))
        if not part.counts.any():
            continue
        found = search(part, fair_prices(part), budget_seconds).packing
        bins.append(offers[found.bins])
        amounts.append(found.amounts)
        top_up(problem, bins[-1], amounts[-1], rest.counts)
        rest = rest.remainder(rest.counts - amounts[-1].sum(axis=0), bins[-1])
    if not bins:
        return no_packing(problem)
    return Packing(bins=np.concatenate(bins), amounts=np.vstack(amounts))


def _single_offer_packing(problem: Problem, order: list[int], offer: int) -> Packing:
    only = np.array([offer], dtype=np.int64)
    none = only[:0]
    offers = {i: only if problem.slots[i, offer] else none for i in range(len(problem.items))}
    return first_fit(problem, order, offers)


def _unused_share(problem: Problem, packing: Packing) -> float:
    """Return the share of CPU plus the share of memory that the new nodes would leave unused."""
    if not len(packing.bins):
        return 2.0
    offered = problem.vectors[packing.bins][:, :2].sum(axis=0)
    contents = packing.contents
    needs = problem.needs[contents.items, packing.bins[contents.nodes], :2]
    used = (needs * contents.pods[:, None]).sum(axis=0)
    return float((1 - used / np.maximum(offered, 1)).sum())


def _preference(problem: Problem, order: list[int], expander: Expander) -> IntArray:
    """Return offers from the most to the least preferred.

    Ties go to the cheaper, then the earlier.
    """
    names = [f"{o.node.key}" for o in problem.offers]
    score: FloatArray
    if expander == "random":
        # Ordered by requests: the numbers of classes depend on the order in which pods came.
        asked = sorted((i.pod_class.requests.tolist(), i.count) for i in problem.items)
        seed = ",".join(f"{requests}:{count}" for requests, count in asked)
        score = np.array([float(zlib.crc32(f"{seed}/{name}".encode())) for name in names])
    else:
        alone = [
            _single_offer_packing(problem, order, offer) for offer in range(len(problem.offers))
        ]
        if expander == "least-waste":
            score = np.array([round(_unused_share(problem, p), 9) for p in alone])
        else:
            score = np.array([-float(p.served().sum()) for p in alone])
    return np.lexsort((np.arange(len(names)), problem.prices, score)).astype(np.int64)
