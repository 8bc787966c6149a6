"""Buying new nodes per group of sectors and tier of regions, within limits and money."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from reconciler.planner.capacity.items import OfferTable, Want
from reconciler.planner.capacity.problem import Offer
from reconciler.planner.capacity.purchase import Budget, Purchase, buy
from reconciler.planner.cycle import Cycle, WaitingClass
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.money import cost_limits
from reconciler.planner.placement.arrays import UNLIMITED, IntArray
from reconciler.planner.placement.fill import tightness
from reconciler.planner.placement.filters import resources
from reconciler.planner.policies.scale_up.certificate import Offered, least_cost
from reconciler.planner.policies.scale_up.fallback import (
    any_spot_without_fallback,
    may_use,
    moves_on,
)
from reconciler.planner.policies.scale_up.place import fill_class
from reconciler.planner.policies.scale_up.refusals import explain
from reconciler.planner.raise_limits import raise_limits
from reconciler.planner.settings import SectorSettings


def buy_capacity(cycle: Cycle, free_before: IntArray) -> None:
    """Buy for everything that still waits; what cannot be served gets its reasons."""
    groups: dict[tuple[str, ...], list[WaitingClass]] = {}
    for waiting in cycle.waiting:
        groups.setdefault(waiting.sectors, []).append(waiting)
    for level in _levels(cycle, len(groups)):
        for sectors, members in groups.items():
            chosen = [w for w in members if level in {None, w.pod_class.spec.priority}]
            _buy_for(cycle, sectors, chosen, free_before)


def _levels(cycle: Cycle, groups: int) -> Sequence[int | None]:
    """Priorities to serve one after the other: only where sectors compete for one sum of money.

    Or for the nodes that one plan may ask for, where there are more pods than that.
    """
    nodes = min((limit.left for limit in raise_limits(cycle) if not limit.money), default=None)
    scarce = nodes is not None and sum(w.left for w in cycle.waiting) > nodes
    if groups < 2 or (cycle.settings.usd_per_hour_max is None and not scarce):
        return (None,)
    return sorted({w.pod_class.spec.priority for w in cycle.waiting}, reverse=True)


def _buy_for(
    cycle: Cycle, sectors: tuple[str, ...], members: list[WaitingClass], free_before: IntArray
) -> None:
    _use_what_was_bought(cycle, members)
    if not any(w.left for w in members):
        return
    fleets = [s for s in cycle.inventory.fleets if s.settings.sector in sectors]
    tiers = max((len(s.settings.regions) for s in fleets), default=0)
    before = cycle.bought_nano_usd
    offered = Offered()
    over_budget = False
    for tier in range(tiers):
        usable = [s for s in fleets if _tier(s) == tier and not s.unavailable]
        for settings, choice in _by_money(cycle, sectors, usable):
            wanting = [
                w
                for w in members
                if w.left
                and w.pod_class.number not in cycle.quarantined
                and w.pod_class.number not in cycle.awaiting_bind
                and (tier == 0 or moves_on(cycle, w, fleets, tier))
            ]
            if choice and wanting:
                over_budget |= _buy_tier(cycle, settings, wanting, choice, offered)
    if cycle.bought_nano_usd > before:
        spent = cycle.bought_nano_usd - before
        cycle.note_bound(sectors, least_cost(cycle, members, offered, free_before, spent))
    for waiting in members:
        if waiting.left:
            explain(cycle, waiting, fleets, over_budget=over_budget)


def _use_what_was_bought(cycle: Cycle, members: list[WaitingClass]) -> None:
    """Room on nodes bought for others before: another priority, or another group of sectors."""
    if not cycle.bought_nano_usd:
        return
    among = np.zeros(cycle.sim.rows, dtype=np.bool_)
    among[[row for row, planned in cycle.planned_nodes.items() if not planned.launching]] = True
    order = tightness(cycle.sim)
    for waiting in members:
        fill_class(cycle, waiting, among, order)


def _by_money(
    cycle: Cycle, sectors: tuple[str, ...], usable: Sequence[FleetStatus]
) -> list[tuple[SectorSettings, Sequence[FleetStatus]]]:
    """All fleets together; sector by sector where one of several has a limit of its own."""
    settings = [s for s in cycle.settings.sectors if s.name in sectors]
    if len(settings) == 1 or all(s.usd_per_hour_max is None for s in settings):
        return [(settings[0], usable)]
    return [(s, [f for f in usable if f.settings.sector == s.name]) for s in settings]


def _tier(status: FleetStatus) -> int:
    """How far down its own list of regions this one is."""
    return status.settings.regions.index(status.key.region)


def _buy_tier(
    cycle: Cycle,
    settings: SectorSettings,
    wanting: list[WaitingClass],
    usable: Sequence[FleetStatus],
    offered: Offered,
) -> bool:
    """One purchase; whether money held something back."""
    over_budget = False
    for allowed, classes in _by_allowed(cycle, wanting, usable).items():
        table = OfferTable(cycle.sim, [offer_of(cycle, usable[i]) for i in allowed])
        wants: list[Want] = [(w.pod_class, w.left) for w in classes]
        purchase = buy(
            cycle.sim,
            wants,
            table,
            settings.expander,
            _budget(cycle, settings.name),
            cycle.settings.search_budget_seconds,
        )
        offered.note(table, purchase)
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
    target = cycle.size_of(status.key)
    return Offer(
        node=node,
        most=UNLIMITED if status.max is None else max(0, status.max - target),
        vector=cycle.sim.offer_of(node.row),
        over_subscription=round(status.settings.over_subscription * resources.WHOLE),
        priority=status.settings.priority,
    )


def _budget(cycle: Cycle, sector: str) -> Budget:
    """What may still be bought: by the cluster's and the sector's cost, and by `raise_limits`."""
    raised = raise_limits(cycle)
    money = [max(0, limit.left) for limit in cost_limits(cycle, sector)]
    money += [limit.left for limit in raised if limit.money]
    nodes = [limit.left for limit in raised if not limit.money]
    return Budget(nano_usd_per_hour=min(money, default=None), nodes=min(nodes, default=None))


def _record(cycle: Cycle, classes: list[WaitingClass], purchase: Purchase) -> None:
    """Raise targets for the bought rows and reserve their places for the pods."""
    pods = np.zeros(cycle.sim.rows, dtype=np.int64)
    for taken in purchase.taken:
        np.add.at(pods, taken.rows, taken.amounts)
    for node, bought in groupby(purchase.rows, key=itemgetter(1)):
        rows, key = [row for row, _ in bought], node.key
        cycle.targets[key] = cycle.size_of(key) + len(rows)
        cycle.plan_new_nodes(rows, key)
        cycle.bought[key] = cycle.bought.get(key, 0) + len(rows)
        cycle.bought_nano_usd += node.nano_usd_per_hour * len(rows)
        if pods[rows].any():
            cycle.pods_on_new[key] = cycle.pods_on_new.get(key, 0) + int(pods[rows].sum())
    by_number = {w.pod_class.number: w for w in classes}
    for taken in purchase.taken:
        waiting = by_number[taken.pod_class.number]
        cycle.reserve(waiting, taken.rows.tolist(), taken.amounts.tolist())
