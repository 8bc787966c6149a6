"""Finds room for every piece of headroom once demand is served, and buys what is missing.

The room is reserved in the what-if cluster only: pending pods are placed first and may use it, and
what they took is found or bought again in the same plan. A node with a piece counts as in use for
everything that would remove it, and no pod is moved into a piece.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

import numpy as np

from reconciler.model.ids import PodKey
from reconciler.model.plan import HeadroomPlan
from reconciler.model.text import counted_noun
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.buy import buy_preferring
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.capacity.problem.purchase import Purchase, PurchaseRequest
from reconciler.planner.disruption.replacement.unproven_version import unproven_version
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.maximum import maximum_reached
from reconciler.planner.headroom.demand import headroom_asked_for, largest_first, may_hold_headroom
from reconciler.planner.headroom.pieces import HeadroomPieces
from reconciler.planner.offers import offer_of, purchase_limits
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.fill import fill
from reconciler.planner.policies.headroom.rows import (
    could_be_cheaper,
    is_worth,
    rows_in_order,
)
from reconciler.planner.reserved_places import BREAKS_RESERVATIONS, ReservationGuard

PIECES_MAX = 10_000
"""The most pieces bought for one item in one plan; the rest is reported as missing.

A config that asks for too much by mistake must not use up memory for as many nodes.
"""


def propose(builder: PlanBuilder) -> None:
    """Keep every piece free, as far as maximum, money and EC2 allow."""
    _keep_free(builder, may_move=True)


def propose_in_place(builder: PlanBuilder) -> None:
    """Keep every piece free without moving pieces off expensive nodes, as no node may be ended."""
    _keep_free(builder, may_move=False)


def _keep_free(builder: PlanBuilder, *, may_move: bool) -> None:
    view, guard = builder.view, ReservationGuard(builder)
    asked, headroom_plans = (
        headroom_asked_for(builder, builder.reservations),
        dict[PodKey, HeadroomPlan](),
    )
    for pieces in largest_first(asked):
        missing = pieces.count
        if pieces.has_size:
            pod_class = view.table.of(pieces.pod, bound=False)
            missing -= _found(builder, guard, pieces, pod_class, may_move=may_move)
            want = min(missing, PIECES_MAX)
            missing -= _bought(builder, guard, pieces, pod_class, want) if want else 0
        headroom_plans[pieces.pod.key] = HeadroomPlan(
            sector=pieces.sector,
            asked=pieces.asked,
            pieces=pieces.count,
            missing=missing,
            because=_why_missing(builder, guard, pieces) if missing else "",
        )
    for pieces in asked:
        builder.note_headroom(headroom_plans[pieces.pod.key])


def _found(
    builder: PlanBuilder,
    guard: ReservationGuard,
    pieces: HeadroomPieces,
    pod_class: PodClass,
    *,
    may_move: bool,
) -> int:
    """Use free room on existing, launching and planned nodes; return the pieces that fit there.

    Expensive nodes that cheaper ones could replace are not used if pieces may move.
    """
    sim, order, mark = builder.sim, rows_in_order(builder), builder.sim.fork()
    taken = fill(sim, pod_class, pieces.count, may_hold_headroom(builder), order)
    replaced: Sequence[int] = ()
    if may_move:
        replaced = _replaceable(builder, guard, pieces, pod_class, dict(taken))
    if replaced:
        sim.revert(mark)
        others = np.zeros(sim.rows, dtype=np.bool_)
        others[[row for row, _ in taken if row not in replaced]] = True
        taken = fill(sim, pod_class, pieces.count, others, order)
    builder.keep_free(pieces.sector, pod_class, taken)
    return sum(amount for _, amount in taken)


def _replaceable(
    builder: PlanBuilder,
    guard: ReservationGuard,
    pieces: HeadroomPieces,
    pod_class: PodClass,
    laid: Mapping[int, int],
) -> list[int]:
    """Return the rows whose pieces can be bought for less: all, the most expensive one, or none.

    Nodes of the same fleets are not bought for them.

    Args:
        builder: The plan; nothing is changed.
        guard: Fleets that may not be asked for more nodes.
        pieces: What is to be kept free.
        pod_class: A pod of the size of one piece.
        laid: How many pieces are on each row. All stay there while some are missing, and while a
            fleet that may be asked for nodes has a version that is not proven.
    """
    if sum(laid.values()) < pieces.count:
        return []
    expensive = could_be_cheaper(builder, _usable(builder, pieces.sector), laid)
    usable = _open(builder, guard, pieces.sector) if expensive else []
    if any(unproven_version(builder.view, status.key) for status in usable):
        return []
    for rows in (list(expensive), list(expensive)[:1]) if usable else ():
        mark = builder.sim.fork()
        request = _request(builder, pieces, pod_class, sum(laid[row] for row in rows), usable)
        price = _price_elsewhere(builder, request, rows)
        builder.sim.revert(mark)
        if price is not None and is_worth(sum(expensive[row] for row in rows), price):
            return rows
    return []


def _price_elsewhere(
    builder: PlanBuilder, request: PurchaseRequest, rows: Sequence[int]
) -> int | None:
    """Return what nodes of other fleets for the pieces on these rows cost, in nano-USD per hour.

    None if not all pieces can be bought for, or only from a fleet of one of the rows. The nodes
    stay in the simulation.
    """
    purchase = buy_preferring(builder.sim, request)
    owners = builder.view.inventory.fleet_of_node
    again = {owners[builder.row_name(r)] for r in rows} & {n.key for _, n in purchase.rows}
    if purchase.left or purchase.over_limits or again:
        return None
    return sum(node.nano_usd_per_hour for _, node in purchase.rows)


def _bought(
    builder: PlanBuilder,
    guard: ReservationGuard,
    pieces: HeadroomPieces,
    pod_class: PodClass,
    missing: int,
) -> int:
    """Ask the sector's fleets for nodes in its preferred region.

    Return the pieces that they hold.
    """
    usable = _open(builder, guard, pieces.sector)
    if not usable:
        return 0
    request = _request(builder, pieces, pod_class, missing, usable)
    purchase = buy_preferring(builder.sim, request)
    _record(builder, pieces, purchase)
    return sum(int(taken.amounts.sum()) for taken in purchase.taken)


def _request(
    builder: PlanBuilder,
    pieces: HeadroomPieces,
    pod_class: PodClass,
    missing: int,
    usable: Sequence[FleetStatus],
) -> PurchaseRequest:
    """Return the purchase request for so many pieces from these fleets."""
    view = builder.view
    (settings,) = [s for s in view.settings.sectors if s.name == pieces.sector]
    return PurchaseRequest(
        wants=[(pod_class, missing)],
        table=OfferTable(builder.sim, [offer_of(builder, status) for status in usable]),
        expander=settings.expander,
        limits=purchase_limits(builder, pieces.sector),
        search_seconds=view.settings.search_budget_seconds,
    )


def _open(builder: PlanBuilder, guard: ReservationGuard, sector: str) -> list[FleetStatus]:
    """Return the fleets that may be asked: one more node of them breaks no reservation."""
    return [s for s in _usable(builder, sector) if not guard.forbids(s.key)]


def _usable(builder: PlanBuilder, sector: str) -> Sequence[FleetStatus]:
    return [
        status
        for status in builder.view.inventory.fleets
        if status.settings.sector == sector
        and not status.tier
        and not status.unavailable
        and not status.settings.departing
    ]


def _record(builder: PlanBuilder, pieces: HeadroomPieces, purchase: Purchase) -> None:
    """Raise targets for the bought rows, and keep them free."""
    for node, bought in groupby(purchase.rows, key=itemgetter(1)):
        rows, key = [row for row, _ in bought], node.key
        builder.plan_new_nodes(key, rows)
        builder.purchases.add_headroom(key, len(rows))
        nodes = counted_noun(len(rows), "more node")
        verb = "needs" if len(rows) == 1 else "need"
        asked = builder.purchase_reasons(key)
        kept = f"headroom of sector {pieces.sector}" if pieces.sector else "headroom"
        because = f"{kept} ({pieces.asked}): {nodes} {verb} to come"
        because = f"{asked}; {because}" if asked else because
        builder.raise_target(key, builder.size_of(key) + len(rows), "scale-up", because)
    for taken in purchase.taken:
        amounts = zip(taken.rows.tolist(), taken.amounts.tolist(), strict=True)
        builder.keep_free(pieces.sector, taken.pod_class, list(amounts))


def _why_missing(builder: PlanBuilder, guard: ReservationGuard, pieces: HeadroomPieces) -> str:
    """Return in words what prevents buying the rest."""
    usable = _usable(builder, pieces.sector)
    if not usable:
        named = "fleet of the sector" if pieces.sector else "group"
        return f"no {named} is available"
    if not pieces.has_size:
        return "no new node of its fleets is known to have room for it"
    suiting = _suiting(builder, pieces, usable)
    if not suiting:
        return "no fleet that is available has nodes that could hold a piece"
    full = [s for s in suiting if s.max is not None and builder.size_of(s.key) >= s.max]
    if len(full) == len(suiting):
        clauses = [maximum_reached(s, builder.size_of(s.key)) for s in full]
        others = [
            f"{s.key.name} {what}" for s, (kind, what) in zip(full, clauses, strict=True) if kind
        ]
        whose = "" if len(full) == len(usable) else " whose nodes could hold a piece"
        return others[0] if others else f"every fleet of the sector{whose} is at its max_capacity"
    if any(guard.forbids(status.key) for status in suiting):
        return f"{BREAKS_RESERVATIONS}; it is bought when these run"
    return "max_hourly_usd or raise_limits allow no further node"


def _suiting(
    builder: PlanBuilder, pieces: HeadroomPieces, usable: Sequence[FleetStatus]
) -> list[FleetStatus]:
    """Return the fleets whose new nodes could hold a piece, whatever their maximum is."""
    offers = [replace(offer_of(builder, status), most=1) for status in usable]
    pod_class = builder.view.table.of(pieces.pod, bound=False)
    suits = OfferTable(builder.sim, offers).feasible(pod_class).tolist()
    return [status for status, does in zip(usable, suits, strict=True) if does]
