"""Places reserved for pods on nodes that have not joined, which other nodes must not break."""

from typing import Final

from reconciler.model.ids import FleetKey
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.consistent_spreads import breaks_reservations
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.capacity.problem.purchase import (
    PlacedPods,
    PodsWithReservation,
    taken_by_row,
)
from reconciler.planner.capacity.refused_by_spreads import shared_spreads
from reconciler.planner.offers import offer_of, purchase_limits

BREAKS_RESERVATIONS: Final = (
    "a node in a new zone would make topology spreads reject pods that are waiting for their nodes"
)
"""Why no node is bought that pending pods do not need."""


def reserved_places(builder: PlanBuilder) -> list[PodsWithReservation]:
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
        PodsWithReservation(taken=taken, table=_may_be_bought(builder, sectors))
        for sectors, taken in by_sectors.items()
    ]


class ReservationGuard:
    """Decides for which fleets an optional node would break a reservation.

    Optional nodes are headroom and replacements. One in a new zone may make topology spreads reject
    pods that have a reservation.

    Args:
        builder: The plan; its demand has been served.
    """

    def __init__(self, builder: PlanBuilder) -> None:
        self._builder = builder
        self._reserved: list[PodsWithReservation] | None = None
        self._forbids: dict[FleetKey, bool] = {}

    def forbids(self, key: FleetKey) -> bool:
        """Return whether one more node of the fleet makes spreads reject pods with a reservation.

        It may be bought once these pods run: a spread does not move running pods.
        """
        if self._reserved is None:
            self._reserved = reserved_places(self._builder)
        if not self._reserved:
            return False
        if key not in self._forbids:
            offer = offer_of(self._builder, self._builder.view.statuses[key])
            found = breaks_reservations(self._builder.sim, offer, self._reserved)
            self._forbids[key] = found
        return self._forbids[key]


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
