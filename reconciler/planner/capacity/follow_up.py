"""Purchases that follow another: the room that it left, and what of offers and money."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.purchase import Purchase, PurchaseRequest, taken_by_row
from reconciler.planner.placement.fill import fill, tightness
from reconciler.planner.placement.simulation import Simulation


def unserved(purchase: Purchase, wants: Sequence[Want]) -> list[Want]:
    """Return the pods that the purchase has no place for, by class."""
    served: Counter[int] = Counter()
    for taken in purchase.taken:
        served[taken.pod_class.number] += int(taken.amounts.sum())
    left = [(pod_class, count - served[pod_class.number]) for pod_class, count in wants]
    return [(pod_class, count) for pod_class, count in left if count > 0]


def fill_up(sim: Simulation, purchase: Purchase, wants: Sequence[Want]) -> None:
    """Put pods on the nodes of a purchase, as far as these have room for them."""
    among = np.zeros(sim.rows, dtype=np.bool_)
    among[[row for row, _ in purchase.rows]] = True
    for pod_class, count in wants:
        pairs = fill(sim, pod_class, count, among, tightness(sim))
        if pairs:
            purchase.taken.append(taken_by_row(pod_class, pairs))


def following(
    sim: Simulation, request: PurchaseRequest, first: Purchase, wants: Sequence[Want]
) -> PurchaseRequest:
    """Return a request for what `first` leaves of these pods, from what it leaves to buy."""
    bought = Counter(id(node) for _, node in first.rows)
    offers = [replace(o, most=o.most - bought[id(o.node)]) for o in request.table.offers]
    rest = request.again(unserved(first, wants), OfferTable(sim, offers))
    return replace(rest, budget=request.budget.less(first.nano_usd, len(first.rows)))


def joined(first: Purchase, second: Purchase, wants: Sequence[Want]) -> Purchase:
    """Return two purchases for these pods as one, of which nothing is proven."""
    both = Purchase(
        rows=[*first.rows, *second.rows],
        taken=[*first.taken, *second.taken],
        left=[],
        over_budget=first.over_budget or second.over_budget,
        worth={**first.worth, **second.worth},
        steady={**first.steady, **second.steady},
        lowered={**first.lowered, **second.lowered},
    )
    both.left = unserved(both, wants)
    return both
