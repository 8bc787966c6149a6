"""Pods with places on nodes that have not joined, which other nodes must not take away."""

from typing import Final

from reconciler.model.ids import FleetKey
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.held_spreads import takes_places_away
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.capacity.problem.purchase import PlacedPods, PromisedPods, taken_by_row
from reconciler.planner.capacity.refused_by_spreads import shared_spreads
from reconciler.planner.offers import offer_of, purchase_limits

TAKES_PLACES: Final = "with a node in a new zone, spreads would refuse pods that wait for nodes"
"""Why no node is bought that pending pods do not need."""


def promised_places(builder: PlanBuilder) -> list[PromisedPods]:
    """Return the pods with a spread over zones that have places on launching or new nodes.

    kube-scheduler has yet to bind them. Those on existing nodes it binds at once.
    """
    by_sectors: dict[tuple[str, ...], list[PlacedPods]] = {}
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
        PromisedPods(taken=taken, table=_may_be_bought(builder, sectors))
        for sectors, taken in by_sectors.items()
    ]


class KeptPlaces:
    """Fleets that get no node which pending pods do not need, as others would lose places.

    Such nodes are headroom and replacements.

    Args:
        builder: The plan; its demand has been served.
    """

    def __init__(self, builder: PlanBuilder) -> None:
        self._builder = builder
        self._promised: list[PromisedPods] | None = None
        self._taken_by: dict[FleetKey, bool] = {}

    def taken_by(self, key: FleetKey) -> bool:
        """Return whether one more node of the fleet makes spreads refuse pods their places.

        It may be bought once these pods run: a spread does not move running pods.
        """
        if self._promised is None:
            self._promised = promised_places(self._builder)
        if not self._promised:
            return False
        if key not in self._taken_by:
            offer = offer_of(self._builder, self._builder.view.statuses[key])
            found = takes_places_away(self._builder.sim, offer, self._promised)
            self._taken_by[key] = found
        return self._taken_by[key]


def _may_be_bought(builder: PlanBuilder, sectors: tuple[str, ...]) -> OfferTable:
    """Return the nodes that may be bought for pods of these sectors, if limits allow one."""
    limits = {sector: purchase_limits(builder, sector) for sector in sectors}
    usable = [
        offer_of(builder, status)
        for status in builder.view.inventory.fleets
        if status.settings.sector in limits and not status.unavailable
    ]
    return OfferTable(
        builder.sim,
        [
            offer
            for offer in usable
            if limits[builder.view.statuses[offer.node.key].settings.sector].allows(
                offer.node.nano_usd_per_hour
            )
        ],
    )
