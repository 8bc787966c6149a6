"""Places pods as Karpenter's provisioner does: on nodes, or on claims for new ones.

A claim is one new node whose instance type is open: each pod that is added narrows the types, and
the cheapest remaining one is launched. The what-if cluster has a row for each claim.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reconciler.model.cluster import Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetKey
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.demand import SectorFinder
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.simulation import MOVES, RowSpec

ToPlace = tuple[Pod, PodClass]


@dataclass(slots=True, eq=False)
class Claim:
    """One new node that is requested."""

    row: int
    zone: str
    offers: list[FleetKey]
    """The groups that it may be from."""
    used: IntArray
    pods: int = 0


@dataclass(slots=True, eq=False)
class Solution:
    """Where pods would go."""

    claims: list[Claim] = field(default_factory=list)
    rows: dict[int, list[Pod]] = field(default_factory=dict)
    """Existing rows, and the pods that go there."""
    unplaced: list[Pod] = field(default_factory=list)


class Solver:
    """Places pods one after the other, the largest first.

    Args:
        builder: The what-if cluster.
        groups: The groups that may be launched.
    """

    def __init__(self, builder: PlanBuilder, groups: Collection[FleetKey]) -> None:
        self._builder, self._sim = builder, builder.sim
        offers = builder.view.offers
        self._keys = [key for key in offers if key in groups]
        self._offers = {key: self._sim.allocatable_of(offers[key].row) for key in self._keys}
        self._zone = {key: _zone_of(builder, key) for key in self._keys}
        self._there = Counter(
            node.labels.get("topology.kubernetes.io/zone", "")
            for node in builder.view.nodes.values()
        )
        self._specs: dict[tuple[FleetKey, ...], RowSpec] = {}
        self._finder = SectorFinder(builder.view.settings)
        statuses = builder.view.statuses
        self._sector = {key: statuses[key].settings.sector for key in self._keys}

    def solve(
        self,
        pods: Sequence[ToPlace],
        among: BoolArray,
        restricted: BoolArray | None = None,
        movers: Collection[str] = (),
    ) -> Solution:
        """Place the pods.

        Args:
            pods: The pods.
            among: The rows that may take them, first to last.
            restricted: Those of the rows that take no `movers`.
            movers: Uids of pods that are moved only to save money.
        """
        self._add_domains()
        solution = Solution()
        waiting = sorted(pods, key=_largest_first)
        while waiting:
            again = [each for each in waiting if not self._place(
                each, solution,
                among & ~restricted if restricted is not None and each[0].key.uid in movers
                else among,
            )]  # fmt: skip
            if len(again) == len(waiting):
                break
            waiting = again
        solution.unplaced = [pod for pod, _ in waiting]
        return solution

    def _add_domains(self) -> None:
        """Make every zone of a group a domain to spread to, whether or not it has nodes yet."""
        seen: set[tuple[str, str]] = set()
        for key in self._keys:
            sector = self._builder.view.statuses[key].settings.sector
            if (sector, self._zone[key]) not in seen:
                seen.add((sector, self._zone[key]))
                row = self._builder.view.offers[key].row
                self._sim.add_row(row._replace(allocatable=FrozenMap({})))

    def _place(self, what: ToPlace, solution: Solution, among: BoolArray) -> bool:
        pod, pod_class = what
        links = self._sim.links(pod_class)
        room = self._sim.room(pod_class, MOVES)
        fitting = np.flatnonzero(among & (room[: len(among)] > 0))
        if len(fitting):
            row = int(fitting[0])
            self._put(pod_class, row)
            solution.rows.setdefault(row, []).append(pod)
            return True
        for claim in sorted(solution.claims, key=lambda claim: claim.pods):
            if (links.plain or room[claim.row] > 0) and self._join(claim, pod_class):
                return True
        return self._claim(pod_class, solution)

    def _put(self, pod_class: PodClass, row: int) -> None:
        self._sim.place(pod_class, np.array([row]), np.ones(1, dtype=np.int64))

    def _join(self, claim: Claim, pod_class: PodClass) -> bool:
        """Add a pod to a claim if a type is left that fits it together with the others."""
        left = self._holding(claim.offers, claim.used + pod_class.requests, pod_class)
        if not left:
            return False
        if len(left) < len(claim.offers):
            claim.offers = left
            self._sim.set_schedulable(claim.row, self._spec(left))
        claim.used = claim.used + pod_class.requests
        claim.pods += 1
        self._put(pod_class, claim.row)
        return True

    def _holding(
        self, keys: Sequence[FleetKey], asked: IntArray, pod_class: PodClass
    ) -> list[FleetKey]:
        """Return the groups of the class's sectors whose nodes fit this much and admit it."""
        offers, sectors = self._builder.view.offers, self._finder.served_by(pod_class.spec)
        return [
            key
            for key in keys
            if self._sector[key] in sectors
            and bool((asked <= self._offers[key])[asked > 0].all())
            and not self._sim.refusal(pod_class, self._sim.node_kind_of(offers[key].row))
        ]

    def _claim(self, pod_class: PodClass, solution: Solution) -> bool:
        """Create a claim in the zone with the fewest nodes of those that fit."""
        holding = self._holding(self._keys, pod_class.requests, pod_class)
        count = self._there + Counter(claim.zone for claim in solution.claims)
        zones = sorted({self._zone[key] for key in holding}, key=lambda z: (count[z], z))
        for zone in zones:
            keys = [key for key in holding if self._zone[key] == zone]
            mark = self._sim.fork()
            row = self._sim.add_row(self._spec(keys))
            if int(self._sim.room(pod_class, MOVES)[row]) > 0:
                self._put(pod_class, row)
                solution.claims.append(
                    Claim(row=row, zone=zone, offers=keys, used=pod_class.requests.copy(), pods=1)
                )
                return True
            self._sim.revert(mark)
        return False

    def _spec(self, keys: Sequence[FleetKey]) -> RowSpec:
        """Return a row for any of these groups: with the most that one of them offers."""
        known = self._specs.get(tuple(keys))
        if known is None:
            rows = [self._builder.view.offers[key].row for key in keys]
            names = {name for row in rows for name in row.allocatable}
            most = {name: max(row.allocatable.get(name, 0) for row in rows) for name in names}
            known = self._specs[tuple(keys)] = rows[0]._replace(
                variants=tuple(dict.fromkeys(v for row in rows for v in row.variants)),
                allocatable=FrozenMap(most),
            )
        return known


def cheapest(builder: PlanBuilder, keys: Collection[FleetKey]) -> FleetKey:
    """Return the group that is launched: the lowest price, then the first by name."""
    prices = prices_of(builder)
    return min(keys, key=lambda key: (prices[key], key))


def prices_of(builder: PlanBuilder) -> Mapping[FleetKey, int]:
    """Return the price of a node of each group, in billionths of a dollar per hour."""
    return {key: offer.nano_usd_per_hour for key, offer in builder.view.offers.items()}


def _zone_of(builder: PlanBuilder, key: FleetKey) -> str:
    return builder.view.statuses[key].settings.zone or ""


def _largest_first(what: ToPlace) -> tuple[object, ...]:
    pod, pod_class = what
    requests = pod_class.spec.requests
    created = pod.created_at.timestamp() if pod.created_at is not None else 0.0
    return (-requests.get("cpu", 0), -requests.get("memory", 0), created, pod.key)
