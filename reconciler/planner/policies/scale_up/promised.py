"""Pods with places on nodes that are not there yet, which nodes for others must not take away."""

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.capacity.problem.purchase import Promised, Taken, taken_by_row
from reconciler.planner.capacity.refused_by_spreads import shared_spreads
from reconciler.planner.offers import offer_of, purchase_budget


def promised_places(builder: PlanBuilder) -> list[Promised]:
    """Return the pods with a spread over zones that have places on launching or new nodes.

    kube-scheduler has yet to bind them. Those on nodes that are there it binds at once.
    """
    by_sectors: dict[tuple[str, ...], list[Taken]] = {}
    for reservation in builder.reservations:
        pod_class = reservation.waiting.pod_class
        if not shared_spreads(builder.sim, pod_class):
            continue
        places = zip(reservation.rows, reservation.amounts, strict=True)
        coming = [(row, amount) for row, amount in places if row in builder.planned_nodes]
        if coming:
            found = by_sectors.setdefault(reservation.waiting.sectors, [])
            found.append(taken_by_row(pod_class, coming))
    return [
        Promised(taken=taken, table=_may_be_bought(builder, sectors))
        for sectors, taken in by_sectors.items()
    ]


def _may_be_bought(builder: PlanBuilder, sectors: tuple[str, ...]) -> OfferTable:
    """Return the nodes that may be bought for pods of these sectors, as far as limits allow one."""
    budgets = {sector: purchase_budget(builder, sector) for sector in sectors}
    usable = [
        offer_of(builder, status)
        for status in builder.view.inventory.fleets
        if status.settings.sector in budgets and not status.unavailable
    ]
    return OfferTable(
        builder.sim,
        [
            offer
            for offer in usable
            if budgets[builder.view.statuses[offer.node.key].settings.sector].allows(
                offer.node.nano_usd_per_hour
            )
        ],
    )
