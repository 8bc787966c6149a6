"""Buying new nodes per group of sectors and tier of regions, within limits and money."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from reconciler.model.ids import FleetKey, Region
from reconciler.model.text import counted_noun
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.held_spreads import buy_holding_spreads
from reconciler.planner.capacity.one_by_one import CHAIN_MAX
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.capacity.problem.purchase import Purchase, PurchaseRequest
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.offers import evened_out_with, offer_of, preferred_less, purchase_budget
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.fill import tightness
from reconciler.planner.policies.scale_up.certificate import Offered
from reconciler.planner.policies.scale_up.overflow import (
    any_spot_without_fallback,
    awaits_answer,
    may_use,
    moves_on,
    silent_for_a_moment,
)
from reconciler.planner.policies.scale_up.place import fill_untorn
from reconciler.planner.policies.scale_up.refusals import explain
from reconciler.planner.policies.scale_up.sector_bounds import note_bounds
from reconciler.planner.policies.scale_up.sector_groups import (
    SectorGroup,
    in_turn,
    sector_groups,
)
from reconciler.planner.removal import TargetReason
from reconciler.planner.reservations import WaitingClass
from reconciler.planner.settings import SectorSettings
from reconciler.planner.view import ClusterView


def buy_for_sectors(builder: PlanBuilder, free_before: IntArray) -> None:
    """Buy for everything that still waits; what cannot be served gets its reasons."""
    groups = sector_groups(builder)
    for turn in in_turn(builder, groups) if groups else ():
        _buy_for_group(builder, turn.group, turn.members)
    _buy_for_followers(builder, groups)
    note_bounds(builder, groups, free_before)
    for group in groups:
        fleets = _fleets_of(builder, group)
        left = [w for w in group.members if w.left]
        for over in (False, True):
            chosen = [w for w in left if (w.pod_class.number in group.over_budget) is over]
            explain(builder, chosen, group.sectors, fleets, over_budget=over)


def _buy_for_followers(builder: PlanBuilder, groups: Sequence[SectorGroup]) -> None:
    """Buy once more for pods that must be near others, where something came after their turn."""
    for _ in range(CHAIN_MAX):
        before = len(builder.reservations)
        for group in groups:
            followers = [
                w
                for w in group.members
                if w.left
                and group.asked_at[w.pod_class.number] < len(builder.reservations)
                and builder.sim.links(w.pod_class).follows_others
            ]
            if any(not builder.sim.links(w.pod_class).lacks_neighbour for w in followers):
                _buy_for_group(builder, group, followers)
        if len(builder.reservations) == before:
            break


def _fleets_of(builder: PlanBuilder, group: SectorGroup) -> list[FleetStatus]:
    return [s for s in builder.view.inventory.fleets if s.settings.sector in group.sectors]


def _buy_for_group(builder: PlanBuilder, group: SectorGroup, members: list[WaitingClass]) -> None:
    view = builder.view
    _use_what_was_bought(builder, members)
    fleets = _fleets_of(builder, group)
    silent = silent_for_a_moment(view, fleets, group.sectors)
    tiers = max((s.tier + 1 for s in fleets), default=0)
    before = builder.purchases.nano_usd_per_hour
    for tier in range(tiers) if any(w.left for w in members) else ():
        usable = [s for s in fleets if s.tier == tier and not s.unavailable]
        for settings, choice in _by_money(view, group.sectors, usable):
            wanting = [
                w
                for w in members
                if w.left
                and w.pod_class.number not in builder.purchases.quarantined
                and w.pod_class.number not in builder.purchases.awaiting_bind
                and (tier == 0 or moves_on(builder, w, fleets, tier))
                and not awaits_answer(builder, w, silent, tier)
            ]
            if choice and wanting and _buy_tier(builder, settings, wanting, choice, group.offered):
                group.over_budget.update(w.pod_class.number for w in members)
    group.nano_usd_per_hour += builder.purchases.nano_usd_per_hour - before
    group.asked_at.update((w.pod_class.number, len(builder.reservations)) for w in members)


def _use_what_was_bought(builder: PlanBuilder, members: list[WaitingClass]) -> None:
    """Place pods on nodes that this plan bought for another priority or group of sectors."""
    if not builder.purchases.nano_usd_per_hour:
        return
    among = np.zeros(builder.sim.rows, dtype=np.bool_)
    among[[row for row, planned in builder.planned_nodes.items() if not planned.launching]] = True
    order = tightness(builder.sim)
    for waiting in members:
        fill_untorn(builder, waiting, among, order)


def _by_money(
    view: ClusterView, sectors: tuple[str, ...], usable: Sequence[FleetStatus]
) -> list[tuple[SectorSettings, Sequence[FleetStatus]]]:
    """Return the purchases to make: one, or one per sector where a sector has its own limit."""
    settings = [s for s in view.settings.sectors if s.name in sectors]
    if len(settings) == 1 or all(s.usd_per_hour_max is None for s in settings):
        return [(settings[0], usable)]
    return [(s, [f for f in usable if f.settings.sector == s.name]) for s in settings]


def _buy_tier(
    builder: PlanBuilder,
    settings: SectorSettings,
    wanting: list[WaitingClass],
    usable: Sequence[FleetStatus],
    offered: Offered,
) -> bool:
    """Buy from the fleets of one tier; return whether a limit on purchases left something out."""
    over_budget = False
    for allowed, classes in _by_allowed(builder, wanting, usable).items():
        table = OfferTable(builder.sim, [offer_of(builder, usable[i]) for i in allowed])
        request = PurchaseRequest(
            wants=[(w.pod_class, w.left) for w in classes],
            table=table,
            expander=settings.expander,
            budget=purchase_budget(builder, settings.name),
            search_seconds=builder.view.settings.search_budget_seconds,
        )
        purchase = buy_holding_spreads(builder.sim, request)
        offered.note(table, purchase)
        over_budget |= purchase.over_budget
        _record(builder, classes, purchase)
    return over_budget


def _by_allowed(
    builder: PlanBuilder, wanting: Sequence[WaitingClass], usable: Sequence[FleetStatus]
) -> dict[tuple[int, ...], list[WaitingClass]]:
    """Classes by the fleets that they may use, some of which a missing fallback may close."""
    everything = tuple(range(len(usable)))
    if all(s.settings.spot for s in usable) or not any_spot_without_fallback(builder.view):
        return {everything: list(wanting)}
    groups: dict[tuple[int, ...], list[WaitingClass]] = {}
    for waiting in wanting:
        allowed = tuple(i for i in everything if may_use(builder, waiting, usable[i]))
        groups.setdefault(allowed, []).append(waiting)
    groups.pop((), None)
    return groups


def _record(builder: PlanBuilder, classes: list[WaitingClass], purchase: Purchase) -> None:
    """Raise targets for the bought rows and reserve their places for the pods."""
    pods = np.zeros(builder.sim.rows, dtype=np.int64)
    for taken in purchase.taken:
        np.add.at(pods, taken.rows, taken.amounts)
    for node, bought in groupby(purchase.rows, key=itemgetter(1)):
        rows, key = [row for row, _ in bought], node.key
        builder.plan_new_nodes(key, rows)
        cost = node.nano_usd_per_hour * len(rows)
        builder.purchases.add(key, len(rows), int(pods[rows].sum()), cost)
        target = builder.size_of(key) + len(rows)
        builder.raise_target(key, target, *_reason(builder, key, target))
    by_number = {w.pod_class.number: w for w in classes}
    for taken in purchase.taken:
        waiting = by_number[taken.pod_class.number]
        builder.reserve(waiting, taken.rows.tolist(), taken.amounts.tolist())


def _preferred(builder: PlanBuilder, status: FleetStatus) -> Region:
    """Return the first choice of region for the demand that this fleet serves."""
    own = status.settings.regions
    return own[0] if own[0] != status.key.region else builder.view.settings.home_region


def _reason(builder: PlanBuilder, key: FleetKey, target: int) -> TargetReason:
    """Return why demand raises the target, by all pods that asked for the fleet so far."""
    status, pods = builder.view.statuses[key], builder.purchases.pods[key]
    verb = "needs" if pods == 1 else "need"
    wanted = counted_noun(target - status.joined_or_launching, "more node")
    because = f"{counted_noun(pods, 'pending pod')} {verb} {wanted}"
    because += preferred_less(builder, status) + evened_out_with(builder, status)
    if status.tier:
        return TargetReason(
            "overflow", f"{because}, which {_preferred(builder, status)} cannot give now"
        )
    return TargetReason("scale-up", because)
