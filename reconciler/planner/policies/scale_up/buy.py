"""Buying new nodes per group of sectors and tier of regions, within limits and money."""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from reconciler.planner.capacity.bound import fair_prices, lower_bound
from reconciler.planner.capacity.items import OfferTable, Want
from reconciler.planner.capacity.problem import Item, Offer, state_problem
from reconciler.planner.capacity.purchase import Purchase, buy
from reconciler.planner.cycle import Cycle, WaitingClass
from reconciler.planner.inventory import FleetStatus
from reconciler.planner.money import cost_of_targets, nano_usd
from reconciler.planner.placement.arrays import UNLIMITED, IntArray
from reconciler.planner.placement.filters import resources
from reconciler.planner.policies.scale_up.fallback import (
    any_spot_without_fallback,
    may_use,
    moves_on,
)
from reconciler.planner.policies.scale_up.refusals import explain
from reconciler.planner.settings import SectorSettings


def buy_capacity(cycle: Cycle, free_before: IntArray) -> None:
    """Buy for everything that still waits; what cannot be served gets its reasons."""
    groups: dict[tuple[str, ...], list[WaitingClass]] = {}
    for waiting in cycle.waiting:
        groups.setdefault(waiting.sectors, []).append(waiting)
    for sectors, members in groups.items():
        _buy_for(cycle, sectors, members, free_before)


def _buy_for(
    cycle: Cycle, sectors: tuple[str, ...], members: list[WaitingClass], free_before: IntArray
) -> None:
    if not any(w.left for w in members):
        return
    fleets = [s for s in cycle.inventory.fleets if s.settings.sector in sectors]
    tiers = max((len(s.settings.regions) for s in fleets), default=0)
    before = cycle.bought_nano_usd
    tables: list[OfferTable] = []
    over_budget = False
    for tier in range(tiers):
        usable = [s for s in fleets if _tier(s) == tier and not s.unavailable]
        wanting = [w for w in members if w.left and (tier == 0 or moves_on(cycle, w, fleets, tier))]
        if not usable or not wanting:
            continue
        over_budget |= _buy_tier(cycle, sectors, wanting, usable, tables)
    if cycle.bought_nano_usd > before:
        _add_bound(cycle, members, tables, free_before, cycle.bought_nano_usd - before)
    for waiting in members:
        if waiting.left:
            explain(cycle, waiting, fleets, over_budget=over_budget)


def _tier(status: FleetStatus) -> int:
    """How far down its own list of regions this one is."""
    return status.settings.regions.index(status.key.region)


def _buy_tier(
    cycle: Cycle,
    sectors: tuple[str, ...],
    wanting: list[WaitingClass],
    usable: Sequence[FleetStatus],
    tables: list[OfferTable],
) -> bool:
    """One purchase; whether money held something back. Adds what was offered to `tables`."""
    settings = next(s for s in cycle.settings.sectors if s.name == sectors[0])
    over_budget = False
    for allowed, classes in _by_allowed(cycle, wanting, usable).items():
        table = OfferTable(cycle.sim, [offer_of(cycle, usable[i]) for i in allowed])
        tables.append(table)
        wants: list[Want] = [(w.pod_class, w.left) for w in classes]
        purchase = buy(
            cycle.sim, wants, table, settings.expander, _budget(cycle, sectors, settings)
        )
        over_budget |= purchase.over_budget
        _record(cycle, classes, purchase)
    return over_budget


def _by_allowed(
    cycle: Cycle, wanting: Sequence[WaitingClass], usable: Sequence[FleetStatus]
) -> dict[tuple[int, ...], list[WaitingClass]]:
    """Classes by the fleets that they may use, some of which a missing fallback may close."""
    everything = tuple(range(len(usable)))
    if all(s.settings.spot for s in usable) or not any_spot_without_fallback(cycle):
        return {everything: list(wanting)}
    groups: dict[tuple[int, ...], list[WaitingClass]] = {}
    for waiting in wanting:
        allowed = tuple(i for i in everything if may_use(cycle, waiting, usable[i]))
        groups.setdefault(allowed, []).append(waiting)
    groups.pop((), None)
    return groups


def offer_of(cycle: Cycle, status: FleetStatus) -> Offer:
    """The fleet's next nodes as something to buy."""
    node = cycle.offers[status.key]
    target = max(cycle.targets[status.key], status.joined)
    return Offer(
        node=node,
        most=UNLIMITED if status.max is None else max(0, status.max - target),
        vector=cycle.sim.offer_of(node.row),
        over_subscription=round(status.settings.over_subscription * 10_000),
        priority=status.settings.priority,
    )


def _budget(cycle: Cycle, sectors: tuple[str, ...], settings: SectorSettings) -> int | None:
    """What may still be spent per hour, by the cluster's and the sector's limit."""
    limits: list[tuple[Decimal | None, list[FleetStatus]]] = [
        (cycle.settings.usd_per_hour_max, list(cycle.inventory.fleets)),
        (
            settings.usd_per_hour_max,
            [s for s in cycle.inventory.fleets if s.settings.sector == sectors[0]],
        ),
    ]
    left = [
        max(0, nano_usd(limit) - cost_of_targets(cycle, fleets))
        for limit, fleets in limits
        if limit is not None
    ]
    return min(left, default=None)


def _record(cycle: Cycle, classes: list[WaitingClass], purchase: Purchase) -> None:
    """Raise targets for the bought rows and promise the pods their seats."""
    for row, node in purchase.rows:
        status = cycle.statuses[node.key]
        cycle.targets[node.key] = max(cycle.targets[node.key], status.joined) + 1
        cycle.seat_new_row(row, node.key)
        cycle.bought_nano_usd += node.nano_usd_per_hour
    by_number = {w.pod_class.number: w for w in classes}
    for pod_class, row, amount in purchase.taken:
        waiting = by_number[pod_class.number]
        key = cycle.seats[row].key
        cycle.pods_on_new[key] = cycle.pods_on_new.get(key, 0) + amount
        cycle.promise(waiting, row, amount)


def _add_bound(
    cycle: Cycle,
    members: list[WaitingClass],
    tables: list[OfferTable],
    free_before: IntArray,
    spent_nano_usd: int,
) -> None:
    """Prove how little the purchase could have cost, whatever had gone where.

    All served demand counts, also what found room on existing rows; those rows' room is credited
    at the same fair prices, where at least one of the classes fits.
    """
    served = [(w.pod_class, w.done) for w in members if w.done]
    offers = [offer for table in tables for offer in table.offers]
    table = tables[0] if len(tables) == 1 else OfferTable(cycle.sim, offers)
    items = [Item(pod_class=c, count=count, slots=table.slots(c)) for c, count in served]
    problem = state_problem(offers, [i for i in items if i.slots.any()], ())
    fair = fair_prices(problem)
    rows = len(free_before)
    open_rows = np.zeros(rows, dtype=np.bool_)
    none = np.zeros(rows, dtype=np.int64)
    for pod_class, _ in served:
        room = resources.room(free_before, free_before, none, pod_class.requests, pod_class.columns)
        open_rows |= (room > 0) & cycle.sim.admitted(pod_class)[:rows]
    positive = np.maximum(free_before[open_rows], 0).astype(np.float64)
    credit = float((positive @ fair.weights).sum())
    bound = min(lower_bound(problem, fair, credit), spent_nano_usd)
    cycle.bound_nano_usd += bound
