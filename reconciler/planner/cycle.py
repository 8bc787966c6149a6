"""One planning cycle in progress: the what-if cluster, the fleets, and what is decided so far.

Policies run over a cycle one after another, each seeing what earlier ones reserved; `planner`
turns the finished cycle into a Plan.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.actions import AnyAction, PolicyName
from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import FleetKey, InstanceId, NodeName, PodKey, Region
from reconciler.model.memory import DemandMemory
from reconciler.model.placements import Destination
from reconciler.model.plan import Held, Kept, Placement, Unplaceable
from reconciler.model.snapshot import Snapshot
from reconciler.planner.budgets import BudgetLedger
from reconciler.planner.census import PodGroup
from reconciler.planner.demand import Demand
from reconciler.planner.fleets.inventory import FleetStatus, Inventory
from reconciler.planner.fleets.new_nodes import NewNode
from reconciler.planner.fleets.stuck_ends import StuckEndLedger
from reconciler.planner.placement.classes import ClassTable, PodClass
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.settings import PlannerSettings


@dataclass(slots=True, eq=False)
class WaitingClass:
    """A class of demand: its pods that still wait, and the sectors that serve them."""

    pod_class: PodClass
    sectors: tuple[str, ...]
    pods: list[Pod]
    """In name order; the first `done` have a place."""
    nominated: bool = False
    """Whether any of them has a nominated node."""
    done: int = 0

    @property
    def left(self) -> int:
        """How many still wait."""
        return len(self.pods) - self.done

    def take(self, amount: int) -> list[Pod]:
        """The next pods to be placed."""
        taken = self.pods[self.done : self.done + amount]
        self.done += amount
        return taken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reservation:
    """Pods of a class and the rows that they go to, in order: `amounts[i]` of them to `rows[i]`."""

    waiting: WaitingClass
    pods: Sequence[Pod]
    rows: Sequence[int]
    amounts: Sequence[int]


@dataclass(slots=True, eq=False)
class PlannedNode:
    """What a row without a node is: launching capacity, or the n-th new node of a fleet."""

    key: FleetKey
    number: int
    launching: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One node, or one instance that never joined, that a plan newly begins to remove.

    `removals` decides whether the plan begins it.
    """

    key: FleetKey
    node: NodeName | None
    """None where the instance never joined."""
    instance: InstanceId | None = None
    actions: tuple[AnyAction, ...]
    placements: tuple[Placement, ...] = ()
    """Where its pods go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacesTaken:
    """Who filled the nodes that were asked for other pods."""

    short: str
    """By number and sector, for Events, which tenants read."""
    named: str
    """With the pods' names, for operators."""


@dataclass(slots=True, eq=False)
class Cycle:
    """The state that policies share."""

    snapshot: Snapshot
    settings: PlannerSettings
    inventory: Inventory
    sim: Simulation
    table: ClassTable
    demand: Demand
    waiting: list[WaitingClass]
    """By priority, then largest first."""
    nodes: dict[NodeName, Node]
    row_of: dict[NodeName, int]
    offers: dict[FleetKey, NewNode]
    running: tuple[PodGroup, ...]
    """Bound pods that are not finished, in groups."""
    pods_on: dict[NodeName, list[Pod]]
    """The same by node, without those that are stuck terminating: they keep no node."""
    stuck_terminating_on: dict[NodeName, list[Pod]]
    """The pods by node that are stuck terminating (see `disruption.stuck_terminating`)."""
    finished_on: dict[NodeName, list[Pod]]
    statuses: dict[FleetKey, FleetStatus]
    targets: dict[FleetKey, int]
    """Target capacities as planned so far; start as they are."""
    budgets: BudgetLedger
    """What all policies together may still disrupt."""
    stuck_ends: StuckEndLedger
    """How many instances that never joined may still be ended."""
    unequipped: frozenset[NodeName] = frozenset()
    """Nodes whose devices have not come yet: pods wait for them, none is moved there."""
    planned_nodes: dict[int, PlannedNode] = field(default_factory=dict)
    new_nodes: dict[FleetKey, int] = field(default_factory=dict)
    """New nodes per fleet so far."""
    bought: dict[FleetKey, int] = field(default_factory=dict)
    """Those of them that demand asked for, and no minimum."""
    replacements: dict[FleetKey, int] = field(default_factory=dict)
    """Nodes asked for in the place of others that leave when they have come."""
    pods_on_new: dict[FleetKey, int] = field(default_factory=dict)
    """Pods that asked for new nodes, per fleet."""
    actions: list[AnyAction] = field(default_factory=list)
    reservations: list[Reservation] = field(default_factory=list)
    """Where demand goes."""
    placements: list[Placement] = field(default_factory=list)
    """Where pods go that policies move."""
    unplaceable: list[Unplaceable] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    used_rows: set[int] = field(default_factory=set)
    """Rows on which this cycle reserved something."""
    removals: list[Removal] = field(default_factory=list)
    """What policies want to begin to remove; settled when all have spoken."""
    raises: dict[FleetKey, tuple[PolicyName, str]] = field(default_factory=dict)
    """Why targets go up where neither demand nor a minimum asks for it."""
    demands: dict[tuple[str, str, Region], DemandMemory] = field(default_factory=dict)
    """Purchases to be remembered, by kind of pods, fleet and region."""
    quarantined: dict[int, str] = field(default_factory=dict)
    """Numbers of classes for which nothing is bought any more, and why."""
    awaiting_bind: dict[int, str] = field(default_factory=dict)
    """Numbers of classes for which nothing more is bought for now, and the sentence that says why:
    kube-scheduler has yet to bind them, or pods of other sectors keep taking their places."""
    places_taken: dict[int, PlacesTaken] = field(default_factory=dict)
    """Numbers of classes whose new nodes other pods have filled, and who they are."""
    bought_nano_usd: int = 0
    bounds: list[tuple[frozenset[str], int]] = field(default_factory=list)
    """Lower bounds on what had to be bought, per set of sectors that have nothing in common."""

    @property
    def at(self) -> datetime:
        """The clock."""
        return self.snapshot.at

    def size_of(self, key: FleetKey) -> int:
        """Nodes that a fleet will have by what is planned so far: one more comes on top of that.

        A target that somebody lowered ends none: those that have joined count all the same.
        """
        return max(self.targets[key], self.statuses[key].joined)

    def stuck_terminating(self, node: NodeName) -> tuple[PodKey, ...]:
        """The pods on a node that are stuck terminating, by name."""
        return tuple(sorted(pod.key for pod in self.stuck_terminating_on.get(node, ())))

    def row_name(self, row: int) -> NodeName:
        """The node of a row."""
        return NodeName(self.sim.names[row])

    def reserve(self, waiting: WaitingClass, rows: Sequence[int], amounts: Sequence[int]) -> None:
        """Record that the next pods of the class go to these rows, so many to each."""
        if not rows:
            return
        self.used_rows.update(rows)
        taken = waiting.take(sum(amounts))
        self.reservations.append(
            Reservation(waiting=waiting, pods=taken, rows=rows, amounts=amounts)
        )

    def reserved_on_nodes(self, waiting: WaitingClass) -> int:
        """How many pods of the class have a place reserved on nodes that are there."""
        return sum(
            amount
            for reservation in self.reservations
            if reservation.waiting is waiting
            for row, amount in zip(reservation.rows, reservation.amounts, strict=True)
            if row not in self.planned_nodes
        )

    def destination(self, row: int) -> Destination:
        """A row as placements name it."""
        planned = self.planned_nodes.get(row)
        if planned is None:
            return Destination(node=self.row_name(row))
        return Destination(
            fleet=planned.key.name,
            region=planned.key.region,
            launching=planned.number if planned.launching else None,
            new_node=None if planned.launching else planned.number,
        )

    def note_bound(self, sectors: Iterable[str], nano_usd: int) -> None:
        """A purchase for these sectors must cost at least so much.

        Bounds add up only where no node can serve both: of purchases that share a sector the
        larger bound counts.
        """
        merged, most = frozenset(sectors), nano_usd
        apart: list[tuple[frozenset[str], int]] = []
        for known, bound in self.bounds:
            if known & merged:
                merged, most = known | merged, max(most, bound)
            else:
                apart.append((known, bound))
        self.bounds = [*apart, (merged, most)]

    def plan_new_nodes(self, rows: Sequence[int], key: FleetKey) -> None:
        """Make rows the fleet's next new nodes."""
        first = self.new_nodes.get(key, 0)
        self.new_nodes[key] = first + len(rows)
        for number, row in enumerate(rows, first):
            self.planned_nodes[row] = PlannedNode(key=key, number=number, launching=False)
