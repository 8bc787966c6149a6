"""Purchases that follow another one: its free room, and the offers and money that it leaves."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.purchase import Purchase, PurchaseRequest, taken_by_row
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.fill import fill, tightness, without_torn
from reconciler.planner.placement.simulation import Simulation


def unserved(purchase: Purchase, wants: Sequence[Want]) -> list[Want]:
    """Return the pods for which the purchase has no place, by class."""
    served: Counter[int] = Counter()
    for taken in purchase.taken:
        served[taken.pod_class.number] += int(taken.amounts.sum())
    left = [(pod_class, count - served[pod_class.number]) for pod_class, count in wants]
    return [(pod_class, count) for pod_class, count in left if count > 0]


def fill_up(
    sim: Simulation, purchase: Purchase, wants: Sequence[Want], table: OfferTable | None = None
) -> None:
    """Put pods on the nodes of a purchase, as far as they have room.

    Args:
        sim: The simulation, with the purchase.
        purchase: The found places are added to it.
        wants: The pods, in the order in which they choose.
        table: What may be bought instead: pods that must share a node are placed only if as many of
            them fit as on one new node. None for no such condition.
    """
    bought = np.zeros(sim.rows, dtype=np.bool_)
    bought[[row for row, _ in purchase.rows]] = True
    for pod_class, count in wants:
        elsewhere = partial(_most_on_one, table, pod_class)
        among = without_torn(sim, pod_class, count, bought, elsewhere)
        pairs = fill(sim, pod_class, count, among, tightness(sim))
        if pairs:
            purchase.taken.append(taken_by_row(pod_class, pairs))


def _most_on_one(table: OfferTable | None, pod_class: PodClass) -> int:
    if table is None:
        return 0
    slots = np.where(table.feasible(pod_class), table.slots_uninflated(pod_class), 0)
    return int(slots.max(initial=0))


def following(
    sim: Simulation, request: PurchaseRequest, first: Purchase, wants: Sequence[Want]
) -> PurchaseRequest:
    """Return a request for these pods from the offers and money that `first` leaves."""
    bought = Counter(id(node) for _, node in first.rows)
    offers = [replace(o, most=o.most - bought[id(o.node)]) for o in request.table.offers]
    rest = request.again(unserved(first, wants), OfferTable(sim, offers))
    return replace(rest, limits=request.limits.less(first.nano_usd, len(first.rows)))


def joined(first: Purchase, second: Purchase, wants: Sequence[Want]) -> Purchase:
    """Return two purchases for these pods as one, without a proven bound."""
    both = Purchase(
        rows=[*first.rows, *second.rows],
        taken=[*first.taken, *second.taken],
        left=[],
        over_limits=first.over_limits or second.over_limits,
        worth={**first.worth, **second.worth},
        steady={**first.steady, **second.steady},
        lowered={**first.lowered, **second.lowered},
        left_out_classes=first.left_out_classes | second.left_out_classes,
    )
    both.left = unserved(both, wants)
    return both
