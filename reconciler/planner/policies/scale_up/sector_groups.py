"""Demand by the sectors that serve it, and the order of purchases that compete."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.one_by_one import CHAIN_MAX
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.offers import offer_of
from reconciler.planner.placement.arrays import UNLIMITED, IntArray
from reconciler.planner.policies.scale_up.certificate import PurchaseEvidence
from reconciler.planner.raise_limits import raise_limits
from reconciler.planner.reservations import WaitingClass


@dataclass(slots=True, eq=False)
class SectorGroup:
    """The classes that the same sectors serve, and what was bought for them."""

    sectors: tuple[str, ...]
    members: list[WaitingClass] = field(default_factory=list)
    evidence: PurchaseEvidence = field(default_factory=PurchaseEvidence)
    nano_usd_per_hour: int = 0
    """The cost of what was bought for it."""
    over_limits: set[int] = field(default_factory=set)
    """Numbers of its classes for which a limit on purchases left something out."""
    asked_at: dict[int, int] = field(default_factory=dict)
    """By class number, how many reservations the plan had when it last bought for the class."""


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """Some classes of one group that are bought for together."""

    group: SectorGroup
    members: list[WaitingClass]


def sector_groups(builder: PlanBuilder) -> list[SectorGroup]:
    """Return all demand, by the sectors that serve it."""
    found: dict[tuple[str, ...], SectorGroup] = {}
    for waiting in builder.waiting:
        group = found.setdefault(waiting.sectors, SectorGroup(waiting.sectors))
        group.members.append(waiting)
    return list(found.values())


def turns_by_priority(builder: PlanBuilder, groups: Sequence[SectorGroup]) -> list[Turn]:
    """Return the purchases to make, in order.

    Groups that compete for something limited are bought for by priority; of equal ones those with
    fewer sectors come first, and then those whose pods the nodes of fewer sectors take: the others
    may go elsewhere, or use the room that is left. Pods that no fleet takes do not change the
    order.
    """
    if len(groups) == 1:
        return [Turn(groups[0], groups[0].members)]
    open_fleets = _OpenFleets(builder, groups)
    found: list[tuple[tuple[float, bool, int, int, int], Turn]] = []
    for together in _merged_competitors(builder, groups, open_fleets):
        levels = _levels(together, open_fleets) if len(together) > 1 else []
        for group in together:
            parts: dict[int | None, list[WaitingClass]] = {}
            for waiting in group.members:
                priority = waiting.pod_class.spec.priority
                level = next((lowest for lowest in levels[:-1] if priority >= lowest), None)
                parts.setdefault(level, []).append(waiting)
            turns = [Turn(group, members) for members in parts.values()]
            found += [(open_fleets.rank(turn), turn) for turn in turns]
    return [turn for _, turn in sorted(found, key=lambda each: each[0])]


class _OpenFleets:
    """Which fleets may still give nodes to which classes."""

    def __init__(self, builder: PlanBuilder, groups: Sequence[SectorGroup]) -> None:
        fleets = [s for s in builder.view.inventory.fleets if not s.unavailable]
        offers = [offer_of(builder, status) for status in fleets]
        table = OfferTable(builder.sim, offers)
        self.sectors = np.array([s.settings.sector for s in fleets], dtype=np.str_)
        self.most = np.array([offer.most for offer in offers], dtype=np.int64)
        stalled = builder.purchases.quarantined.keys() | builder.purchases.awaiting_bind.keys()
        self._place = {id(waiting): place for place, waiting in enumerate(builder.waiting)}
        self._possible: set[int] = set()
        """Classes whose pods fleets of their sectors may take."""
        self._priority: dict[int, float] = {}
        """The priority that counts for the order, for those of them that need no neighbour, or
        whose neighbours have a place or may get one."""
        self._followers: set[int] = set()
        """Those of these that wait for others, which have no place yet."""
        self._choice: dict[int, tuple[int, int]] = {}
        """By group, from how many sectors it may be bought for, and how many sectors' nodes take
        it."""
        self._nodes: dict[int, IntArray] = {}
        for group in groups:
            own = np.isin(self.sectors, group.sectors)
            bought, admitting = np.zeros((2, len(fleets)), dtype=np.bool_)
            nodes = np.zeros(len(fleets), dtype=np.int64)
            for waiting in group.members:
                pod_class = waiting.pod_class
                links, takers = builder.sim.links(pod_class), table.feasible(pod_class) & own
                nowhere = links.fits_nowhere and not links.lacks_neighbour
                idle = not waiting.left or pod_class.number in stalled
                if idle or nowhere or not takers.any():
                    continue
                self._possible.add(id(waiting))
                slots = table.slots(pod_class)
                bought |= takers
                admitting |= slots > 0
                each = np.maximum(slots, 1) if links.plain else 1
                nodes += np.where(takers, -(-waiting.left // each), 0)
            choice = len(set(self.sectors[bought])), len(set(self.sectors[admitting]))
            self._choice[id(group)] = choice
            self._nodes[id(group)] = nodes
        self._weigh(builder)

    def any_for(self, waiting: WaitingClass) -> bool:
        """Return whether some fleet may be asked for nodes for the class."""
        return id(waiting) in self._possible

    def nodes_for(self, group: SectorGroup) -> IntArray:
        """Return (fleets,) the most nodes for which the group may ask each."""
        return self._nodes[id(group)]

    def _weigh(self, builder: PlanBuilder) -> None:
        """Compute the priority with which each class counts for the order.

        Pods that wait for others without a place count with the lowest priority of these, if that
        is lower than their own, and not at all if these may never get a place.
        """
        possible = [w for w in builder.waiting if id(w) in self._possible]
        links_of = {id(w): builder.sim.links(w.pod_class) for w in possible}
        coming: dict[int, float] = {}
        for _ in range(CHAIN_MAX + 1):
            left = []
            for waiting in possible:
                links = links_of[id(waiting)]
                priority = float(waiting.pod_class.spec.priority)
                if links.lacks_neighbour:
                    awaited = [id(counter) for counter in links.affinity if not counter.total]
                    if not coming.keys() >= set(awaited):
                        left.append(waiting)
                        continue
                    self._followers.add(id(waiting))
                    priority = min(priority, *(coming[counter] for counter in awaited))
                self._priority[id(waiting)] = priority
                for counter in builder.sim.feeds(waiting.pod_class):
                    coming[id(counter)] = max(priority, coming.get(id(counter), priority))
            if len(left) == len(possible):
                break
            possible = left

    def rank(self, turn: Turn) -> tuple[float, bool, int, int, int]:
        """Return the sort key of the turn.

        Of equal priority, turns that wait for others come after them.
        """
        counted = [waiting for waiting in turn.members if id(waiting) in self._priority]
        priority = max((self._priority[id(waiting)] for waiting in counted), default=-np.inf)
        first = [waiting for waiting in counted if self._priority[id(waiting)] == priority]
        follows = all(id(waiting) in self._followers for waiting in first)
        place = min(self._place[id(waiting)] for waiting in counted or turn.members)
        return -priority, follows, *self._choice[id(turn.group)], place


def _merged_competitors(
    builder: PlanBuilder, groups: Sequence[SectorGroup], open_fleets: _OpenFleets
) -> list[list[SectorGroup]]:
    """Return the groups, merged if they compete for one sum of money or for the same nodes.

    For money they compete if the cluster or a sector has a limit; for nodes if a fleet of several
    groups, or one plan, may have fewer than they may ask for.
    """
    if builder.view.settings.usd_per_hour_max is not None or nodes_are_short(builder):
        return [list(groups)]
    asked = np.array([open_fleets.nodes_for(group) for group in groups], dtype=np.int64)
    short = (open_fleets.most < UNLIMITED) & (asked.sum(axis=0) > open_fleets.most)
    rivals = [(asked[:, fleet] > 0).nonzero()[0] for fleet in short.nonzero()[0]]
    for sector in builder.view.settings.sectors:
        if sector.usd_per_hour_max is not None:
            named = [sector.name in group.sectors for group in groups]
            rivals.append(np.array(named, dtype=np.bool_).nonzero()[0])
    return connected(groups, [[groups[n] for n in numbers.tolist()] for numbers in rivals])


def nodes_are_short(builder: PlanBuilder) -> bool:
    """Return whether `raise_limits` may allow fewer nodes than the pending pods need."""
    nodes = min((limit.left for limit in raise_limits(builder) if not limit.money), default=None)
    return nodes is not None and sum(w.left for w in builder.waiting) > nodes


def connected(
    groups: Sequence[SectorGroup], sets: Iterable[Sequence[SectorGroup]]
) -> list[list[SectorGroup]]:
    """Return the groups, merged if one of the sets contains them."""
    found = [[group] for group in groups]
    for each in sets:
        joined = [part for part in found if any(group in each for group in part)]
        if len(joined) > 1:
            rest = [part for part in found if part not in joined]
            found = [*rest, [group for part in joined for group in part]]
    return found


def _levels(groups: Sequence[SectorGroup], open_fleets: _OpenFleets) -> list[int]:
    """Return the lowest priority of each level, the highest level first.

    A level is one priority; several are one level if only pods of one group have them, as a
    purchase serves its own pods by priority.
    """
    groups_of: dict[int, set[int]] = {}
    for number, group in enumerate(groups):
        for waiting in group.members:
            if open_fleets.any_for(waiting):
                groups_of.setdefault(waiting.pod_class.spec.priority, set()).add(number)
    levels: list[int] = []
    last: set[int] = set()
    for priority in sorted(groups_of, reverse=True):
        here = groups_of[priority]
        if len(here) == 1 and here == last:
            levels[-1] = priority
        else:
            levels.append(priority)
        last = here
    return levels
