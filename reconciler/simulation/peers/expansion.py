"""The group that Cluster Autoscaler's estimator and its expander `least-waste` would raise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.ids import FleetKey
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.demand import SectorFinder
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.fill import fill
from reconciler.planner.placement.simulation import RowSpec, Simulation
from reconciler.planner.reservations import WaitingClass

NODES_MAX = 1000
"""The limit of nodes of one scale-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """What one group would fit."""

    key: FleetKey
    nodes: int
    classes: tuple[PodClass, ...]
    waste: float


def best_expansion(
    builder: PlanBuilder, left: Sequence[WaitingClass], groups: Mapping[FleetKey, int]
) -> Expansion | None:
    """Return the group that would waste least CPU and memory; of equal ones the first by name.

    Args:
        builder: The what-if cluster, which is unchanged afterwards.
        left: Demand that fits on no node.
        groups: Those that may be raised, and by how many nodes at most.
    """
    finder = SectorFinder(builder.view.settings)
    expansions = []
    for key, most in groups.items():
        sector = builder.view.statuses[key].settings.sector
        served = [w for w in left if sector in finder.served_by(w.pod_class.spec)]
        expansions.append(_expansion(builder, served, key, most) if served else None)
    return min(
        (expansion for expansion in expansions if expansion is not None),
        key=lambda each: (round(each.waste, 9), each.key),
        default=None,
    )


def _expansion(
    builder: PlanBuilder, left: Sequence[WaitingClass], key: FleetKey, most: int
) -> Expansion | None:
    sim, row = builder.sim, builder.view.offers[key].row
    mark = sim.fork()
    packing = _Packing(sim, row, min(most, NODES_MAX))
    for waiting in sorted(left, key=lambda w: -_score(w.pod_class, sim.allocatable_of(row))):
        packing.add(waiting.pod_class, waiting.left)
    sim.revert(mark)
    nodes = len(packing.used)
    if not nodes:
        return None
    whole = builder.view.statuses[key].settings.options[0].resources
    waste = sum(
        1 - packing.requested.get(name, 0) / (nodes * max(1, whole.get(name, 0)))
        for name in ("cpu", "memory")
    )
    return Expansion(key=key, nodes=nodes, classes=tuple(packing.classes), waste=waste)


def _score(pod_class: PodClass, offer: IntArray) -> float:
    """Return the share of a node that a pod takes: CPU and memory together."""
    return float((pod_class.requests[:2] / np.maximum(offer[:2], 1)).sum())


class _Packing:
    """Packs pods by first fit onto the new nodes of one group; adds nodes when these are full."""

    def __init__(self, sim: Simulation, row: RowSpec, most: int) -> None:
        self._sim, self._row, self._most = sim, row, most
        self._rows: list[int] = []
        self.used: set[int] = set()
        self.classes: list[PodClass] = []
        self.requested: dict[str, int] = {}

    def add(self, pod_class: PodClass, count: int) -> None:
        """Pack as many pods of the class as fit."""
        left = count - self._onto_those_there(pod_class, count)
        while left and (amount := self._onto_a_new_one(pod_class, left)):
            left -= amount
        if left < count:
            self.classes.append(pod_class)
            for name, value in pod_class.spec.requests.items():
                self.requested[name] = self.requested.get(name, 0) + value * (count - left)

    def _onto_those_there(self, pod_class: PodClass, count: int) -> int:
        if not self._rows:
            return 0
        among = np.zeros(self._sim.rows, dtype=np.bool_)
        among[self._rows] = True
        taken = fill(self._sim, pod_class, count, among, np.array(self._rows, dtype=np.int64))
        self.used.update(row for row, _ in taken)
        return sum(amount for _, amount in taken)

    def _onto_a_new_one(self, pod_class: PodClass, left: int) -> int:
        """Fill the last new node, or several if all are equal; return the number of placed pods."""
        sim = self._sim
        if not self._rows or self._rows[-1] in self.used:
            if len(self._rows) >= self._most:
                return 0
            self._rows.append(sim.add_row(self._row))
        last = self._rows[-1]
        room = min(left, int(sim.room(pod_class)[last]))
        if room <= 0:
            return 0
        sim.place(pod_class, np.array([last]), np.array([room]))
        self.used.add(last)
        more = min(-(-left // room) - 1, self._most - len(self._rows))
        if more <= 0 or not sim.links(pod_class).plain:
            return room
        first = sim.add_row(self._row, more)
        rows = np.arange(first, first + more)
        amounts = np.minimum(room, np.maximum(0, left - room * np.arange(1, more + 1)))
        sim.place(pod_class, rows, amounts)
        self._rows += rows.tolist()
        self.used.update(rows.tolist())
        return room + int(amounts.sum())


def spread_over_groups(
    builder: PlanBuilder, best: Expansion, groups: Mapping[FleetKey, int], *, alike: bool
) -> dict[FleetKey, int]:
    """Return how many nodes each group gets: the smallest of the similar groups first."""
    chosen = [best.key, *(_similar(builder, best, groups) if alike else ())]
    sizes = {key: builder.view.statuses[key].current for key in chosen}
    given = dict.fromkeys(chosen, 0)
    for _ in range(best.nodes):
        with_room = [key for key in chosen if given[key] < groups[key]]
        if not with_room:
            break
        key = min(with_room, key=lambda k: (sizes[k] + given[k], k))
        given[key] += 1
    return {key: count for key, count in given.items() if count}


def _similar(
    builder: PlanBuilder, best: Expansion, groups: Mapping[FleetKey, int]
) -> list[FleetKey]:
    """Return groups of the same machines in other zones that fit the same pods."""
    sim, view = builder.sim, builder.view
    fleet_keys = []
    for key in groups:
        one, other = view.statuses[best.key].settings, view.statuses[key].settings
        same = key != best.key and (one.sector, one.size, one.spot, one.taints, one.options) == (
            other.sector,
            other.size,
            other.spot,
            other.taints,
            other.options,
        )
        kind = sim.node_kind_of(view.offers[key].row)
        if same and not any(sim.refusal(pod_class, kind) for pod_class in best.classes):
            fleet_keys.append(key)
    return fleet_keys
