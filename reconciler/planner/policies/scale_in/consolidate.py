"""Consolidation: a node's pods on cheaper capacity, at most one new node, when that saves 5 %.

The new node is asked for first. The drain begins in a later plan, when it is there: a drain is
only begun with its end in sight (docs/scale-in.md).
"""

from collections.abc import Iterable, Sequence

from reconciler.model.ids import FleetKey, NodeName
from reconciler.planner.inventory import FleetStatus
from reconciler.planner.money import cost_limits, usd
from reconciler.planner.mover import Mover
from reconciler.planner.moves import Moves
from reconciler.planner.placement.classes import Group
from reconciler.planner.policies.scale_in.candidates import Candidate
from reconciler.planner.policies.scale_in.scene import Scene

SAVING_PERCENT_MIN = 5


class Consolidator:
    """What could replace a node; does nothing unless the config asks for consolidation."""

    def __init__(self, scene: Scene, mover: Mover) -> None:
        self._scene = scene
        self._mover = mover
        self._on = scene.cycle.settings.consolidation

    def cheaper_rows(self, candidate: Candidate, idle: Iterable[NodeName]) -> list[int]:
        """Those of the idle nodes that cost less: they had better stay, and the candidate go."""
        if not self._on:
            return []
        cycle = self._scene.cycle
        return [
            cycle.row_of[name]
            for name in sorted(idle)
            if self._may_stay(cycle.inventory.fleet_of_node[name])
            and self._saves(candidate, cycle.inventory.fleet_of_node[name])
        ]

    def _may_stay(self, key: FleetKey) -> bool:
        """Whether the fleet may keep all its nodes: one that departs is no place for anything."""
        status = self._scene.cycle.statuses[key]
        return status.max is None or status.joined <= status.max

    def move(
        self, candidate: Candidate, groups: Sequence[Group], more: Sequence[int] = ()
    ) -> Moves | None:
        """To nodes that stay; else, in a consolidation, to idle ones that cost less as well.

        Args:
            candidate: The node that leaves.
            groups: Its pods.
            more: Further rows that may take them, after all others.
        """
        found = self._mover.move(candidate.node, groups)
        if found is None:
            rows = [*self.cheaper_rows(candidate, self._scene.waiting), *more]
            found = self._mover.move(candidate.node, groups, rows) if rows else None
        return found

    def coming_rows(self, candidate: Candidate) -> list[int]:
        """Cheaper capacity that is launching, and promised to nobody."""
        if not self._on:
            return []
        cycle = self._scene.cycle
        return [
            row
            for row, seat in cycle.seats.items()
            if row not in cycle.used_rows and self._saves(candidate, seat.key)
        ]

    def cheaper_fleets(self, candidate: Candidate) -> list[FleetKey]:
        """Fleets of its region that may grow by a node that costs less, the cheapest first."""
        if not self._on:
            return []
        cycle = self._scene.cycle
        region = candidate.status.key.region
        near = (s for s in cycle.inventory.fleets if s.key.region == region)
        cheaper = [status.key for status in near if self._may_grow(candidate, status)]
        return sorted(cheaper, key=lambda key: (cycle.offers[key].nano_usd_per_hour, key))

    def is_dearer(self, candidate: Candidate, key: FleetKey) -> bool:
        """Whether consolidation would rather have a node of the fleet than the candidate."""
        return self._on and self._saves(candidate, key)

    def would_buy(self, candidate: Candidate, groups: Sequence[Group], key: FleetKey) -> bool:
        """Whether one more node of the fleet would do in its place, once that is to be had."""
        if not self.is_dearer(candidate, key):
            return False
        cycle = self._scene.cycle
        mark = cycle.sim.fork()
        row = cycle.sim.add_row(cycle.offers[key].row)
        fits = self._mover.fits(candidate.node, groups, [row], spread=True)
        cycle.sim.revert(mark)
        return fits

    def ask_for(self, candidate: Candidate, key: FleetKey) -> None:
        """Raise the fleet's target by the one node; the candidate counts as one that leaves."""
        cycle = self._scene.cycle
        cycle.targets[key] = cycle.size_of(key) + 1
        cycle.replacements[key] = cycle.replacements.get(key, 0) + 1
        old, new = (usd(cycle.offers[k].nano_usd_per_hour) for k in (candidate.status.key, key))
        because = f"a node at {new} USD/h can take the pods of {candidate.node.name} at {old}"
        cycle.raises[key] = ("consolidation", because)
        self._scene.non_empty_begun += 1

    def _saves(self, candidate: Candidate, key: FleetKey) -> bool:
        offers = self._scene.cycle.offers
        old, new = offers[candidate.status.key], offers[key]
        if not (old.priced and new.priced):
            return False
        most = old.nano_usd_per_hour * (100 - SAVING_PERCENT_MIN)
        return most > 0 and new.nano_usd_per_hour * 100 <= most

    def _may_grow(self, candidate: Candidate, status: FleetStatus) -> bool:
        cycle = self._scene.cycle
        target = cycle.size_of(status.key)
        return (
            not status.unavailable
            and self._saves(candidate, status.key)
            and (status.max is None or target < status.max)
            and self._affordable(status)
        )

    def _affordable(self, status: FleetStatus) -> bool:
        """Both nodes run for a while: no cost limit may be broken meanwhile."""
        price = self._scene.cycle.offers[status.key].nano_usd_per_hour
        limits = cost_limits(self._scene.cycle, status.settings.sector)
        return all(price <= limit.left for limit in limits)
