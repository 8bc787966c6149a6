"""Expanders other than `cost`: one fleet is chosen for as many pods as it takes, then the next."""

import zlib

import numpy as np

from reconciler.planner.capacity.bound import FairPrices
from reconciler.planner.capacity.packing import first_fit, item_order
from reconciler.planner.capacity.problem import Packing, Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray
from reconciler.planner.settings import Expander


def expand(problem: Problem, fair: FairPrices, expander: Expander) -> Packing:
    """Pack everything on the expander's first choice, what is left on its second, and so on."""
    order = item_order(problem, fair.items)
    preference = _preference(problem, order, expander)
    offers = [preference[problem.slots[i][preference] > 0] for i in range(len(problem.items))]
    return first_fit(problem, order, offers)


def _alone(problem: Problem, order: list[int], offer: int) -> Packing:
    only = np.array([offer], dtype=np.int64)
    none = only[:0]
    offers = [only if problem.slots[i, offer] else none for i in range(len(problem.items))]
    return first_fit(problem, order, offers)


def _waste(problem: Problem, packing: Packing) -> float:
    """Share of CPU plus share of memory that the new nodes would leave unused."""
    if not len(packing.bins):
        return 2.0
    offered = problem.vectors[packing.bins][:, :2].sum(axis=0)
    contents = packing.contents
    needs = problem.needs[contents.items, packing.bins[contents.nodes], :2]
    used = (needs * contents.pods[:, None]).sum(axis=0)
    return float((1 - used / np.maximum(offered, 1)).sum())


def _preference(problem: Problem, order: list[int], expander: Expander) -> IntArray:
    """Offers from the most to the least preferred; ties go to the cheaper, then the earlier."""
    names = [f"{o.node.key}" for o in problem.offers]
    score: FloatArray
    if expander == "priority":
        score = np.array([-float(o.priority) for o in problem.offers])
    elif expander == "random":
        seed = ",".join(str(i.pod_class.number) + ":" + str(i.count) for i in problem.items)
        score = np.array([float(zlib.crc32(f"{seed}/{name}".encode())) for name in names])
    else:
        alone = [_alone(problem, order, offer) for offer in range(len(problem.offers))]
        if expander == "least-waste":
            score = np.array([round(_waste(problem, p), 9) for p in alone])
        else:
            score = np.array([-float(p.served().sum()) for p in alone])
    return np.lexsort((np.arange(len(names)), problem.prices, score)).astype(np.int64)
