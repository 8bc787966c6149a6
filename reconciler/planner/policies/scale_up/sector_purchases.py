"""Buys new nodes per group of sectors and tier of regions, within limits and money."""

from collections import Counter
from collections.abc import Container, Sequence
from functools import cache, partial
from itertools import chain

import numpy as np

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.consistent_spreads import buy_with_consistent_spreads
from reconciler.planner.capacity.follow_up import unserved
from reconciler.planner.capacity.one_by_one import CHAIN_MAX
from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.purchase import (
    Purchase,
    PurchaseLimits,
    PurchaseRequest,
    restore,
)
from reconciler.planner.cost_limits import cost_limits
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.offers import offer_of, purchase_limits
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.fill import tightness
from reconciler.planner.policies.scale_up.overflow import (
    any_spot_without_fallback,
    awaits_answer,
    may_use,
    moves_on,
    silent_for_a_moment,
)
from reconciler.planner.policies.scale_up.place import fill_untorn
from reconciler.planner.policies.scale_up.recording import record
from reconciler.planner.policies.scale_up.refusals import explain
from reconciler.planner.policies.scale_up.sector_bounds import note_bounds
from reconciler.planner.policies.scale_up.sector_groups import (
    SectorGroup,
    nodes_are_short,
    sector_groups,
    turns_by_priority,
)
from reconciler.planner.reservations import WaitingClass
from reconciler.planner.reserved_places import reserved_places


def buy_for_sectors(builder: PlanBuilder, free_before: IntArray) -> None:
    """Buy for all pods that are still pending; record reasons for what cannot be served."""
    groups = sector_groups(builder)
    for turn in turns_by_priority(builder, groups) if groups else ():
        _buy_for_group(builder, turn.group, turn.members)
    if len(groups) > 1:
        _use_what_was_bought(builder, [w for g in groups for w in g.members if w.left])
    _buy_for_followers(builder, groups)
    note_bounds(builder, groups, free_before)
    for group in groups:
        fleets = _fleets_of(builder, group)
        left = [w for w in group.members if w.left]
        for over in (False, True):
            chosen = [w for w in left if (w.pod_class.number in group.over_limits) is over]
            explain(builder, chosen, group.sectors, fleets, over_limits=over)


def _buy_for_followers(builder: PlanBuilder, groups: Sequence[SectorGroup]) -> None:
    """Buy once more for pods that must be near others that were bought for after them."""
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
    """Buy for pods of one group of sectors, from one tier of regions after the other.

    What its purchases cost, and whether a limit kept it from some, is noted in the group.
    """
    fleets = _fleets_of(builder, group)
    silent = silent_for_a_moment(builder.view, fleets, group.sectors)
    before = builder.purchases.nano_usd_per_hour
    for level in _levels(builder, group, members, fleets):
        _use_what_was_bought(builder, level)
        for tier in _tiers(fleets) if any(w.left for w in level) else ():
            usable = _usable(fleets, tier)
            wanting = [
                w
                for w in level
                if w.left
                and _may_be_bought_for(builder, w)
                and (tier == 0 or moves_on(builder, w, fleets, tier))
                and not awaits_answer(builder, w, silent, tier)
            ]
            if usable and wanting and _buy_tier(builder, group, wanting, usable):
                group.over_limits.update(w.pod_class.number for w in level)
        group.asked_at.update((w.pod_class.number, len(builder.reservations)) for w in level)
    group.nano_usd_per_hour += builder.purchases.nano_usd_per_hour - before


def _may_be_bought_for(builder: PlanBuilder, waiting: WaitingClass) -> bool:
    """Return whether earlier purchases let more be bought for the class now (`progress`)."""
    number, purchases = waiting.pod_class.number, builder.purchases
    return number not in purchases.quarantined and number not in purchases.awaiting_bind


def _tiers(fleets: Sequence[FleetStatus]) -> range:
    return range(max((s.tier + 1 for s in fleets), default=0))


def _usable(fleets: Sequence[FleetStatus], tier: int) -> list[FleetStatus]:
    return [s for s in fleets if s.tier == tier and not s.unavailable]


def _levels(
    builder: PlanBuilder,
    group: SectorGroup,
    members: list[WaitingClass],
    fleets: Sequence[FleetStatus],
) -> list[list[WaitingClass]]:
    """Yield the classes in parts that are bought for one after the other.

    One purchase serves its pods by priority. If several are made that may use the same nodes or the
    same money, each of them is made for one priority after the other.
    """
    limited = bool(cost_limits(builder, *group.sectors)) or nodes_are_short(builder)
    tiers = _tiers(fleets)
    several = limited and any(moves_on(builder, w, fleets, t) for t in tiers[1:] for w in members)
    if not several and (limited or any(s.max is not None for s in fleets)):
        several = any(len(_by_allowed(builder, members, _usable(fleets, t))) > 1 for t in tiers)
    return _by_priority(members) if several else [members]


def _by_priority(classes: Sequence[WaitingClass]) -> list[list[WaitingClass]]:
    """Yield the classes of each priority, the highest first."""
    levels: dict[int, list[WaitingClass]] = {}
    for waiting in classes:
        levels.setdefault(waiting.pod_class.spec.priority, []).append(waiting)
    return [levels[priority] for priority in sorted(levels, reverse=True)]


def _use_what_was_bought(builder: PlanBuilder, members: Sequence[WaitingClass]) -> None:
    """Place pods, by priority, on nodes that this plan bought for others."""
    if not builder.purchases.nodes:
        return
    among = np.zeros(builder.sim.rows, dtype=np.bool_)
    among[[row for row, planned in builder.planned_nodes.items() if not planned.launching]] = True
    order = tightness(builder.sim)
    for waiting in sorted(members, key=lambda w: -w.pod_class.spec.priority):
        fill_untorn(builder, waiting, among, order)


def _buy_tier(
    builder: PlanBuilder,
    group: SectorGroup,
    wanting: list[WaitingClass],
    usable: Sequence[FleetStatus],
) -> bool:
    """Buy from the fleets of one tier; return whether a limit on purchases left something out.

    Pods that fewer fleets may serve come first: the others may use the room that these leave.
    """
    over_limits = False
    by_allowed = _by_allowed(builder, wanting, usable)
    for allowed in sorted(by_allowed, key=len):
        classes = by_allowed[allowed]
        if len(by_allowed) > 1:
            _use_what_was_bought(builder, classes)
            classes = [w for w in classes if w.left]
        if classes:
            over_limits |= _buy_from(builder, group, classes, [usable[i] for i in allowed])
    return over_limits


def _by_allowed(
    builder: PlanBuilder, wanting: Sequence[WaitingClass], usable: Sequence[FleetStatus]
) -> dict[tuple[int, ...], list[WaitingClass]]:
    """Return classes by the fleets that they may use.

    A missing fallback may exclude some fleets.
    """
    everything = tuple(range(len(usable)))
    if all(s.settings.spot for s in usable) or not any_spot_without_fallback(builder.view):
        return {everything: list(wanting)}
    groups: dict[tuple[int, ...], list[WaitingClass]] = {}
    for waiting in wanting:
        allowed = tuple(i for i in everything if may_use(builder, waiting, usable[i]))
        groups.setdefault(allowed, []).append(waiting)
    groups.pop((), None)
    return groups


def _buy_from(
    builder: PlanBuilder,
    group: SectorGroup,
    classes: list[WaitingClass],
    fleets: Sequence[FleetStatus],
) -> bool:
    """Buy from these fleets; return whether a limit on purchases left something out.

    If sectors of the group have limits of their own, the cheapest purchase of all counts if it
    keeps them; else the same for one priority after the other, and finally for one sector after the
    other.
    """
    several = len(group.sectors) > 1
    usable = _affordable(builder, group, fleets) if several else fleets
    if not usable:
        return True
    mark = builder.sim.fork()
    table = OfferTable(builder.sim, [offer_of(builder, status) for status in usable])
    limits = purchase_limits(builder, *(() if several else group.sectors))
    purchase = _bought(builder, group, [(w.pod_class, w.left) for w in classes], table, limits)
    exceeded = _sectors_exceeded(builder, group, purchase)
    if not exceeded:
        group.evidence.note(table, purchase)
        record(builder, classes, purchase)
        return purchase.over_limits or len(usable) < len(fleets)
    builder.sim.revert(mark)
    group.evidence.note_choice(table)
    levels = _by_priority(classes)
    if len(levels) == 1:
        return _buy_by_sector(builder, group, classes, usable, exceeded)
    return _buy_by_priority(builder, group, levels, fleets, usable)


def _sectors_exceeded(
    builder: PlanBuilder, group: SectorGroup, purchase: Purchase
) -> frozenset[str]:
    """Return the sectors whose limits of their own the purchase does not keep."""
    limits = _limits(builder, group)
    if not limits:
        return frozenset()
    spent: Counter[str] = Counter()
    for _, node in purchase.rows:
        spent[builder.view.statuses[node.key].settings.sector] += node.nano_usd_per_hour
    return frozenset(sector for sector, cost in spent.items() if cost > limits.get(sector, cost))


def _buy_by_priority(
    builder: PlanBuilder,
    group: SectorGroup,
    levels: Sequence[Sequence[WaitingClass]],
    fleets: Sequence[FleetStatus],
    affordable: Sequence[FleetStatus],
) -> bool:
    """Buy for one priority after the other; return whether a limit left something out.

    Priorities that no sector's limit affects any more are one purchase.
    """
    limited_sectors = _limits(builder, group).keys()
    over_limits = False
    for place, level in enumerate(levels):
        left = _affordable(builder, group, affordable)
        limited = any(status.settings.sector in limited_sectors for status in left)
        wanting = level if limited else list(chain(*levels[place:]))
        _use_what_was_bought(builder, wanting)
        if pending := [w for w in wanting if w.left]:
            over_limits |= _buy_from(builder, group, pending, fleets)
        if not limited:
            break
    return over_limits


def _limits(builder: PlanBuilder, group: SectorGroup) -> dict[str, int]:
    """Return what the sectors of the group with limits of their own may still spend, by name."""
    return {
        cost_limit.of_sector: cost_limit.left for cost_limit in cost_limits(builder, *group.sectors)
    }


def _affordable(
    builder: PlanBuilder, group: SectorGroup, fleets: Sequence[FleetStatus]
) -> list[FleetStatus]:
    """Return the fleets whose sectors' limits allow a further node."""
    limits, offers = _limits(builder, group), builder.view.offers
    return [
        status
        for status in fleets
        if status.settings.sector not in limits
        or offers[status.key].nano_usd_per_hour <= limits[status.settings.sector]
    ]


def _buy_by_sector(
    builder: PlanBuilder,
    group: SectorGroup,
    classes: Sequence[WaitingClass],
    fleets: Sequence[FleetStatus],
    exceeded: Container[str],
) -> bool:
    """Buy from one sector after the other; return whether a limit left something out.

    Sectors come first whose cheapest nodes cost more than their limits allow, or all come in the
    order of the config if that leaves fewer pods or costs less.
    """
    mark = builder.sim.fork()
    named = [s.name for s in builder.view.settings.sectors if s.name in group.sectors]
    wanted = sorted(named, key=lambda name: name not in exceeded)
    tries = []
    for order in [named] if named == wanted else [named, wanted]:
        builder.sim.revert(mark)
        tries.append(_from_sectors(builder, group, classes, fleets, order))
    best = min(tries, key=_left_and_cost)
    if best is not tries[-1]:
        builder.sim.revert(mark)
        for table, purchase in best:
            restore(builder.sim, builder.sim.fork(), table, purchase)
    for table, purchase in best:
        group.evidence.note(table, purchase)
        record(builder, classes, purchase)
    return any(purchase.over_limits for _, purchase in best)


_Bought = Sequence[tuple[OfferTable, Purchase]]


def _left_and_cost(bought: _Bought) -> tuple[int, int]:
    left = sum(count for _, count in bought[-1][1].left) if bought else 0
    return left, sum(purchase.nano_usd for _, purchase in bought)


def _from_sectors(
    builder: PlanBuilder,
    group: SectorGroup,
    classes: Sequence[WaitingClass],
    fleets: Sequence[FleetStatus],
    order: Sequence[str],
) -> _Bought:
    """Return a purchase from each sector for what those before it leave; none is recorded."""
    found: list[tuple[OfferTable, Purchase]] = []
    wants, limits = [(w.pod_class, w.left) for w in classes], purchase_limits(builder)
    for sector in order:
        own = [offer_of(builder, s) for s in fleets if s.settings.sector == sector]
        if own and wants:
            table = OfferTable(builder.sim, own)
            within = purchase_limits(builder, sector).and_within(limits)
            purchase = _bought(builder, group, wants, table, within)
            found.append((table, purchase))
            limits = limits.less(purchase.nano_usd, len(purchase.rows))
            wants = unserved(purchase, wants)
    return found


def _bought(
    builder: PlanBuilder,
    group: SectorGroup,
    wants: Sequence[Want],
    table: OfferTable,
    limits: PurchaseLimits,
) -> Purchase:
    """Return a purchase within limits; it is not recorded."""
    sectors = builder.view.settings.sectors
    request = PurchaseRequest(
        wants=wants,
        table=table,
        expander=next(s.expander for s in sectors if s.name in group.sectors),
        limits=limits,
        search_seconds=builder.view.settings.search_budget_seconds,
        reserved=cache(partial(reserved_places, builder)),
    )
    return buy_with_consistent_spreads(builder.sim, request)
