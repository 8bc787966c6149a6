"""Packs pods on launching capacity as tightly as it was bought.

A purchase is searched for, and its nodes hold their pods more tightly than first fit could place
them. Until the nodes have joined, every plan has to find the places again: with first fit only it
would miss some, and buy more. So if pods seem to be left over, all launching nodes are searched
together. If they do not hold all pods, the purchase is made once more: the places are found if all
its nodes are launching. Otherwise launching capacity and what could be bought are treated as one
purchase in which launching nodes are preferred. Nodes that the same plan buys for `min_capacity`
come in any case, so they count as launching ones here.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.ids import FleetKey
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.bulk import serve_from_all
from reconciler.planner.capacity.buy import buy
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.capacity.problem.problem import Offer
from reconciler.planner.capacity.problem.purchase import (
    NO_PURCHASE_LIMITS,
    Purchase,
    PurchaseLimits,
    PurchaseRequest,
)
from reconciler.planner.fleets.new_nodes.new_node import FREE_SHARE
from reconciler.planner.offers import offer_of, purchase_limits
from reconciler.planner.placement.arrays import UNLIMITED
from reconciler.planner.reservations import WaitingClass

Placed = list[tuple[WaitingClass, list[tuple[int, int]]]]
"""A class, with its rows and amounts."""

PRICE_FACTOR_MIN = 4
"""The least that a new node counts as next to launching ones, in multiples of the usual price
for its size."""
PRICE_FACTOR_MAX = 10_000
"""The most that a new node counts as, in multiples of its own price, so that sums stay within 64
bits."""
CHEAPER_FACTOR = PRICE_FACTOR_MIN * FREE_SHARE
"""How much cheaper launching nodes count if free ones may be bought, whose prices are traces."""
SHARE = 0.2
"""The share of the search budget: every plan looks for places on launching nodes."""
ON_ALL_PODS_MAX, NODES_MAX = 400, 200
"""Above this number nodes are not looked at one by one."""
PODS_MAX = 10_000
CELLS_MAX = 5_000_000
"""In classes x offers.

Up to this it takes at most about three times as long as the purchase did, in every plan until the
nodes have joined; more pods are left to first fit.
"""

Wanting = list[tuple[WaitingClass, int]]
"""Classes, and how many of their pods need a place."""
BySectors = Mapping[tuple[str, ...], Wanting]
"""Classes with their pods that need a place, by the sectors that serve them."""
Launching = Mapping[FleetKey, Sequence[int]]
"""The rows of each fleet's launching nodes, and of those that this plan buys for its minimum."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Outcome:
    """The result of one placement; smaller is better."""

    left: tuple[int, ...]
    """Pods without a place, by priority, highest first."""
    compared_nano_usd: int
    """The price of the nodes that would be bought, by which purchases are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packed:
    """Places on launching rows, and their outcome."""

    placed: Placed
    outcome: _Outcome


def packed_again(
    builder: PlanBuilder, placed: Placed, mark: tuple[int, int], on_nodes: Callable[[], Placed]
) -> Placed:
    """Return what was placed, or other places that lead to a cheaper purchase.

    Args:
        builder: The plan; what is returned is in its simulation.
        placed: Pods on nodes and on launching capacity, in the simulation.
        mark: The state of the simulation before any of that was placed.
        on_nodes: Places pods on nodes only, in the simulation.
    """
    launching = coming_rows(builder)
    if not launching or not may_be_searched(builder):
        return placed
    left = still_wanting(builder, placed, launching)
    if not left:
        return placed
    builder.sim.revert(mark)
    other = on_nodes()
    wanting = still_wanting(builder, other, launching)
    found = None
    if may_hold(builder, launching, wanting):
        found, refuted = on_all(builder, wanting, launching)
        if found is None and not refuted:
            found = as_bought(builder, wanting, launching)
    if found is None or any(found.outcome.left):
        other_way = _with_what_could_be_bought(builder, wanting, launching)
        found = min(filter(None, (found, other_way)), key=lambda each: each.outcome)
    if found.outcome.compared_nano_usd or any(found.outcome.left):
        builder.sim.revert(mark)
        place_all(builder, placed)
        if _bought_for(builder, left) <= found.outcome:
            return placed
        builder.sim.revert(mark)
        place_all(builder, other)
    place_all(builder, found.placed)
    return other + found.placed


def place_all(builder: PlanBuilder, placed: Placed) -> None:
    """Place pods in the simulation where they were placed before."""
    for waiting, taken in placed:
        for row, amount in taken:
            builder.sim.place(waiting.pod_class, np.array([row]), np.array([amount]))


def counts_of(placed: Placed) -> Counter[int]:
    """Return how many pods of each class got a place, by the `id` of its `WaitingClass`."""
    found: Counter[int] = Counter()
    for waiting, taken in placed:
        found[id(waiting)] += sum(amount for _, amount in taken)
    return found


def coming_rows(builder: PlanBuilder) -> dict[FleetKey, list[int]]:
    """Return the rows of each fleet's launching nodes, and of those bought for its minimum."""
    found: dict[FleetKey, list[int]] = {}
    for row, planned in builder.planned_nodes.items():
        found.setdefault(planned.key, []).append(row)
    return found


def may_be_searched(builder: PlanBuilder) -> bool:
    """Return whether the pods are few enough for a search in each plan."""
    pods = sum(waiting.left for waiting in builder.waiting)
    return pods <= PODS_MAX and len(builder.waiting) * len(builder.view.offers) <= CELLS_MAX


def may_hold(
    builder: PlanBuilder,
    launching: Launching,
    wanting: BySectors,
) -> bool:
    """Return whether launching nodes have enough of each resource for all the pods together."""
    rows = [row for each in launching.values() for row in each]
    asked = sum(
        waiting.pod_class.requests * count for each in wanting.values() for waiting, count in each
    )
    return bool((builder.sim.free[rows].sum(axis=0) >= asked).all())


def still_wanting(builder: PlanBuilder, placed: Placed, launching: Launching) -> BySectors:
    """Return the pods that still need a place, without those that no node could take."""
    got = counts_of(placed)
    found: dict[tuple[str, ...], Wanting] = {}
    tables: dict[tuple[str, ...], OfferTable] = {}
    for waiting in builder.waiting:
        sectors, count = waiting.sectors, waiting.left - got[id(waiting)]
        if not count:
            continue
        if sectors not in tables:
            offers = [*_launching_offers(builder, sectors, launching), *_new(builder, sectors)]
            tables[sectors] = OfferTable(builder.sim, offers)
        if tables[sectors].feasible(waiting.pod_class).any():
            found.setdefault(sectors, []).append((waiting, count))
    return found


def _bought_for(builder: PlanBuilder, wanting: BySectors) -> _Outcome:
    """Return what would be bought for these pods; the simulation is left as it was."""
    mark = builder.sim.fork()
    purchases: list[Purchase] = []
    for sectors, asked in wanting.items():
        limits = _limits(builder, sectors, purchases)
        purchases.append(_buy(builder, _new(builder, sectors), asked, SHARE, limits))
    builder.sim.revert(mark)
    price = sum(purchase.compared_nano_usd for purchase in purchases)
    return _Outcome(left=_left(builder, purchases), compared_nano_usd=price)


def on_all(
    builder: PlanBuilder,
    wanting: BySectors,
    launching: Launching,
) -> tuple[_Packed | None, bool]:
    """Return places for all pods on launching nodes, and whether it is proven that there are none.

    The simulation is left as it was.
    """
    if len(wanting) != 1 or sum(map(len, launching.values())) > NODES_MAX:
        return None, False
    [(sectors, asked)] = wanting.items()
    if sum(count for _, count in asked) > ON_ALL_PODS_MAX:
        return None, False
    rows = {key: list(each) for key, each in launching.items()}
    mark = builder.sim.fork()
    table = OfferTable(builder.sim, _launching_offers(builder, sectors, rows))
    wants = [(waiting.pod_class, count) for waiting, count in asked]
    seconds = builder.view.settings.search_budget_seconds
    answer = serve_from_all(builder.sim, wants, table, seconds)
    builder.sim.revert(mark)
    purchase = answer.purchase
    if purchase is None:
        return None, answer.refuted
    row_of = {row: rows[node.key].pop(0) for row, node in purchase.rows}
    outcome = _Outcome(left=_left(builder, [purchase]), compared_nano_usd=0)
    return _Packed(placed=_on_launching(purchase, row_of, asked), outcome=outcome), False


def as_bought(
    builder: PlanBuilder,
    wanting: BySectors,
    launching: Launching,
) -> _Packed | None:
    """Search for the purchase again; return None unless all of its nodes are launching.

    If nothing has changed since, the result is the same: the cost of the launching nodes is added
    to the limits. The simulation is left as it was.
    """
    rows = {key: list(each) for key, each in launching.items()}
    mark = builder.sim.fork()
    placed: Placed = []
    purchases = []
    for sectors, asked in wanting.items():
        offers = [_with_those(offer, rows) for offer in _new(builder, sectors)]
        nodes_left = sum(len(each) for each in rows.values())
        spent = sum(len(rows.get(o.node.key, ())) * o.node.nano_usd_per_hour for o in offers)
        money = _limits(builder, sectors).less(-spent, 0).nano_usd_per_hour
        limits = PurchaseLimits(nano_usd_per_hour=money, nodes=nodes_left)
        purchase = _buy(builder, offers, asked, limits=limits)
        nodes = Counter(node.key for _, node in purchase.rows)
        if any(count > len(rows.get(key, ())) for key, count in nodes.items()):
            builder.sim.revert(mark)
            return None
        row_of = {row: rows[node.key].pop(0) for row, node in purchase.rows}
        placed += _on_launching(purchase, row_of, asked)
        purchases.append(purchase)
    builder.sim.revert(mark)
    left = _left(builder, purchases)
    return _Packed(placed=placed, outcome=_Outcome(left=left, compared_nano_usd=0))


def _with_what_could_be_bought(
    builder: PlanBuilder,
    wanting: BySectors,
    launching: Launching,
) -> _Packed:
    """Return the best purchase of launching and new nodes, with new ones made more expensive.

    If limits do not allow all of the new nodes, it has launching nodes only. The simulation is left
    as it was.
    """
    rows = {key: list(each) for key, each in launching.items()}
    mark = builder.sim.fork()
    placed: Placed = []
    purchases = []
    nano_usd, nodes, compared = 0, 0, 0
    for sectors, asked in wanting.items():
        limits = _limits(builder, sectors).less(nano_usd, nodes)
        new = [o for o in _new(builder, sectors) if limits.allows(o.node.nano_usd_per_hour)]
        any_free = not all(offer.node.nano_usd_per_hour for offer in new)
        coming = _launching_offers(builder, sectors, rows, CHEAPER_FACTOR if any_free else 1)
        times = 1 if any_free else max(map(_price_factor, new), default=1)
        own = {id(offer.node) for offer in coming}
        before = builder.sim.fork()
        offers = [*coming, *(_at_price(offer, times) for offer in new)]
        purchase = _buy(builder, offers, asked, SHARE)
        bought = [n for _, n in purchase.rows if id(n) not in own]
        spent = sum(builder.view.offers[n.key].nano_usd_per_hour for n in bought)
        if not limits.holds(spent, len(bought)):
            builder.sim.revert(before)
            purchase, bought, spent = _buy(builder, coming, asked, SHARE), [], 0
        row_of = {row: rows[n.key].pop(0) for row, n in purchase.rows if id(n) in own}
        placed += _on_launching(purchase, row_of, asked)
        nano_usd, nodes = nano_usd + spent, nodes + len(bought)
        compared += sum(builder.view.offers[n.key].compared_nano_usd for n in bought)
        purchases.append(purchase)
    builder.sim.revert(mark)
    return _Packed(
        placed=placed,
        outcome=_Outcome(left=_left(builder, purchases), compared_nano_usd=compared),
    )


def _limits(
    builder: PlanBuilder, sectors: Sequence[str], after: Sequence[Purchase] = ()
) -> PurchaseLimits:
    """Return what may be bought after purchases.

    A sector's own limit counts if it is the only one.
    """
    found = purchase_limits(builder, *(sectors if len(sectors) == 1 else ()))
    return found.less(sum(p.nano_usd for p in after), sum(len(p.rows) for p in after))


def _new(builder: PlanBuilder, sectors: Collection[str]) -> list[Offer]:
    """Return what may be bought from fleets of these sectors, each in its preferred region."""
    return [
        offer_of(builder, status)
        for status in builder.view.inventory.fleets
        if status.settings.sector in sectors and not status.tier and not status.unavailable
    ]


def _with_those(offer: Offer, rows: Launching) -> Offer:
    """Return the offer as if its launching nodes had not been asked for yet."""
    most = offer.most + len(rows.get(offer.node.key, ()))
    return replace(offer, most=min(UNLIMITED, most))


def _launching_offers(
    builder: PlanBuilder, sectors: Collection[str], rows: Launching, cheaper: int = 1
) -> list[Offer]:
    """Return launching nodes of these sectors as offers.

    Their price is the usual one for their size, divided by `cheaper`.
    """
    offers = builder.view.offers
    return [
        Offer(
            node=replace(
                offers[status.key],
                nano_usd_per_hour=-(-offers[status.key].usual_nano_usd // cheaper),
            ),
            most=len(rows[status.key]),
            vector=builder.sim.allocatable_of(offers[status.key].row),
            over_subscription=0,
            priority=status.settings.priority,
        )
        for status in builder.view.inventory.fleets
        if status.settings.sector in sectors and rows.get(status.key)
    ]


def _price_factor(offer: Offer) -> int:
    """Return the factor on a new node's price by which launching nodes are preferred."""
    price = max(1, offer.node.nano_usd_per_hour)
    return min(PRICE_FACTOR_MAX, -(-PRICE_FACTOR_MIN * offer.node.usual_nano_usd // price))


def _at_price(offer: Offer, times: int) -> Offer:
    price = times * offer.node.compared_nano_usd
    return replace(offer, node=replace(offer.node, nano_usd_per_hour=price), balanced=None)


def _buy(
    builder: PlanBuilder,
    offers: Sequence[Offer],
    asked: Wanting,
    share: float = 1.0,
    limits: PurchaseLimits = NO_PURCHASE_LIMITS,
) -> Purchase:
    """Return a purchase, searched for with this share of the search budget."""
    wants = [(waiting.pod_class, count) for waiting, count in asked]
    seconds = share * builder.view.settings.search_budget_seconds
    table = OfferTable(builder.sim, offers)
    return buy(
        builder.sim,
        PurchaseRequest(wants=wants, table=table, search_seconds=seconds, limits=limits),
    )


def _left(builder: PlanBuilder, purchases: Iterable[Purchase]) -> tuple[int, ...]:
    """Return pods that are not served, by priority, highest first."""
    levels = dict.fromkeys(sorted({-w.pod_class.spec.priority for w in builder.waiting}), 0)
    for purchase in purchases:
        for pod_class, count in purchase.left:
            levels[-pod_class.spec.priority] += count
    return tuple(levels.values())


def _on_launching(purchase: Purchase, row_of: Mapping[int, int], asked: Wanting) -> Placed:
    """Return where the pods go on launching rows; `row_of` maps rows of the purchase to these."""
    waiting_of = {waiting.pod_class.number: waiting for waiting, _ in asked}
    found: Placed = []
    for taken in purchase.taken:
        pairs = zip(taken.rows.tolist(), taken.amounts.tolist(), strict=True)
        places = [(row_of[row], amount) for row, amount in pairs if row in row_of and amount]
        if places:
            found.append((waiting_of[taken.pod_class.number], places))
    return found
