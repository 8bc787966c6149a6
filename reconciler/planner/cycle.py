"""One planning cycle in progress: the what-if cluster, the fleets, and what is decided so far.

Policies run over a cycle one after another, each seeing what earlier ones reserved; `planner`
turns the finished cycle into a Plan.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice
from operator import attrgetter, lt

from reconciler.model.actions import AnyAction, PolicyName
from reconciler.model.cluster import Node, Pod, PodSpec
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.memory import DemandMemory
from reconciler.model.placements import Destination
from reconciler.model.plan import Held, Kept, Placement, Unplaceable
from reconciler.model.snapshot import Snapshot
from reconciler.planner.budgets import BudgetLedger
from reconciler.planner.census import PodGroup, take_census
from reconciler.planner.demand import Demand, Wish, find_demand
from reconciler.planner.inventory import FleetStatus, Inventory, take_inventory
from reconciler.planner.new_nodes import NewNode, daemon_specs, new_node
from reconciler.planner.placement.attach_limits import least_ebs_limit
from reconciler.planner.placement.classes import ClassTable, PodClass
from reconciler.planner.placement.simulation import NO_LIMITS, RowSpec, Simulation
from reconciler.planner.placement.volumes import EBS_DRIVER, VolumeResolver
from reconciler.planner.removal import Removal
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
class Promise:
    """Pods of a class and the rows that they go to, in order: `amounts[i]` of them to `rows[i]`."""

    waiting: WaitingClass
    pods: Sequence[Pod]
    rows: Sequence[int]
    amounts: Sequence[int]


@dataclass(slots=True, eq=False)
class Seat:
    """What an imagined row is: launching capacity, or the n-th new node of a fleet."""

    key: FleetKey
    number: int
    launching: bool


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
    """The same by node."""
    finished_on: dict[NodeName, list[Pod]]
    statuses: dict[FleetKey, FleetStatus]
    targets: dict[FleetKey, int]
    """Target capacities as planned so far; start as they are."""
    budgets: BudgetLedger
    """What all policies together may still disrupt."""
    seats: dict[int, Seat] = field(default_factory=dict)
    new_nodes: dict[FleetKey, int] = field(default_factory=dict)
    """New nodes per fleet so far."""
    replacements: dict[FleetKey, int] = field(default_factory=dict)
    """Nodes asked for in the place of others that leave when they have come."""
    pods_on_new: dict[FleetKey, int] = field(default_factory=dict)
    """Pods that asked for new nodes, per fleet."""
    actions: list[AnyAction] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)
    """Where demand goes."""
    placements: list[Placement] = field(default_factory=list)
    """Where pods go that policies move."""
    unplaceable: list[Unplaceable] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    used_rows: set[int] = field(default_factory=set)
    """Rows on which this cycle promised something."""
    removals: list[Removal] = field(default_factory=list)
    """What policies want to begin to remove; settled when all have spoken."""
    raises: dict[FleetKey, tuple[PolicyName, str]] = field(default_factory=dict)
    """Why targets go up where neither demand nor a minimum asks for it."""
    demands: dict[tuple[str, str, Region], DemandMemory] = field(default_factory=dict)
    """Purchases to be remembered, by kind of pods, fleet and region."""
    quarantined: dict[int, str] = field(default_factory=dict)
    """Numbers of classes for which nothing is bought any more, and why."""
    bought_nano_usd: int = 0
    bounds: list[tuple[frozenset[str], int]] = field(default_factory=list)
    """Lower bounds on what had to be bought, per set of sectors that have nothing in common."""

    @property
    def at(self) -> datetime:
        """The clock."""
        return self.snapshot.at

    def row_name(self, row: int) -> NodeName:
        """The node of a row."""
        return NodeName(self.sim.names[row])

    def promise(self, waiting: WaitingClass, rows: Sequence[int], amounts: Sequence[int]) -> None:
        """Record that the next pods of the class go to these rows, so many to each."""
        if not rows:
            return
        self.used_rows.update(rows)
        taken = waiting.take(sum(amounts))
        self.promises.append(Promise(waiting=waiting, pods=taken, rows=rows, amounts=amounts))

    def promised_on_nodes(self, waiting: WaitingClass) -> int:
        """How many pods of the class were promised nodes that are there."""
        return sum(
            amount
            for promise in self.promises
            if promise.waiting is waiting
            for row, amount in zip(promise.rows, promise.amounts, strict=True)
            if row not in self.seats
        )

    def destination(self, row: int) -> Destination:
        """A row as placements name it."""
        seat = self.seats.get(row)
        if seat is None:
            return Destination(node=self.row_name(row))
        return Destination(
            fleet=seat.key.name,
            region=seat.key.region,
            launching=seat.number if seat.launching else None,
            new_node=None if seat.launching else seat.number,
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

    def seat_new_rows(self, rows: Sequence[int], key: FleetKey) -> None:
        """Make rows the fleet's next new nodes."""
        first = self.new_nodes.get(key, 0)
        self.new_nodes[key] = first + len(rows)
        for number, row in enumerate(rows, first):
            self.seats[row] = Seat(key=key, number=number, launching=False)


def open_cycle(snapshot: Snapshot, settings: PlannerSettings, also: Iterable[Pod] = ()) -> Cycle:
    """Join everything and set the what-if cluster up as things are now.

    Args:
        snapshot: The world.
        settings: The sector config, resolved.
        also: Pods that get a class, but neither run nor wait: for questions about them.
    """
    cluster = snapshot.cluster
    inventory = take_inventory(snapshot, settings)
    groups = take_census(cluster.pods)
    demand = find_demand(groups, settings)
    bound = [g for g in groups if g.traits.bound and not g.traits.finished]
    names = frozenset(node.name for node in cluster.nodes)
    asked_about = list(also)
    resolver = VolumeResolver(
        cluster.claims, cluster.volumes, cluster.storage_classes, _with_volumes(groups), names
    )
    table = ClassTable(
        [*_distinct([*bound, *(w.group for w in demand.wishes)]), *asked_about],
        cluster.namespaces,
        resolver,
    )
    running = _classified(bound, table)
    waiting = _waiting(demand.wishes, table)
    for pod in asked_about:
        table.of(pod, bound=False)
    sim = Simulation(table)
    nodes = {node.name: node for node in sorted(cluster.nodes, key=lambda n: n.name)}
    limits = {csi.name: csi.limits for csi in cluster.csi_nodes}
    sim.add_rows(
        [
            _row(node, leaving=name in inventory.leaving, limits=limits.get(name, NO_LIMITS))
            for name, node in nodes.items()
        ]
    )
    row_of = {name: row for row, name in enumerate(nodes)}
    sim.load((pod_class, _rows(pods, row_of)) for pod_class, pods in running)
    daemons = daemon_specs(cluster.daemon_sets, groups)
    cycle = Cycle(
        snapshot=snapshot,
        settings=settings,
        inventory=inventory,
        sim=sim,
        table=table,
        demand=demand,
        waiting=waiting,
        nodes=nodes,
        row_of=row_of,
        offers=_offers(inventory, settings, daemons, limits),
        running=tuple(bound),
        pods_on=_by_node(bound, nodes),
        finished_on=_by_node([g for g in groups if g.traits.finished], nodes),
        statuses={status.key: status for status in inventory.fleets},
        targets={status.key: status.current for status in inventory.fleets},
        budgets=BudgetLedger(cluster.budgets),
    )
    _seat_launching(cycle)
    return cycle


def _row(node: Node, *, leaving: bool, limits: Mapping[str, int | None]) -> RowSpec:
    usable = node.ready and not (node.unschedulable or node.unreadable or node.deleting or leaving)
    return RowSpec(
        name=node.name,
        variants=(node.labels,),
        taints=node.taints,
        schedulable=usable,
        allocatable=node.allocatable,
        volume_limits=limits,
    )


def node_row(node: Node, taints_left_out: frozenset[str]) -> RowSpec:
    """The row of a node as it would be without some taints."""
    return RowSpec(
        name=node.name,
        variants=(node.labels,),
        taints=tuple(t for t in node.taints if t.key not in taints_left_out),
        schedulable=node.ready and not node.unschedulable and not node.unreadable,
        allocatable=node.allocatable,
    )


def _distinct(groups: Iterable[PodGroup]) -> Iterable[Pod]:
    return chain.from_iterable(group.distinct for group in groups)


def _with_volumes(groups: Iterable[PodGroup]) -> list[Pod]:
    """The pods that have claims, unless they are finished."""
    having = [g.pods for g in groups if g.traits.volumes and not g.traits.finished]
    return list(chain.from_iterable(having))


def _classified(
    groups: Iterable[PodGroup], table: ClassTable
) -> list[tuple[PodClass, Sequence[Pod]]]:
    """Bound pods by class; a class may come more than once."""
    return [
        (table.of(pods[0], bound=True), pods)
        for group in groups
        for pods in table.parted(group.pods)
    ]


def _rows(pods: Iterable[Pod], row_of: Mapping[NodeName, int]) -> list[int]:
    """The rows of the pods' nodes, as far as those nodes are known."""
    found = map(row_of.get, map(attrgetter("node_name"), pods))
    return [row for row in found if row is not None]


def _waiting(wishes: Iterable[Wish], table: ClassTable) -> list[WaitingClass]:
    """Classes are numbered in the order of their first pods' names, whatever the snapshot's."""
    parts = [(_by_name(w.group), w) for w in wishes]
    split = [(pods, w) for named, w in parts for pods in table.parted(named)]
    split.sort(key=lambda part: (-part[1].group.traits.spec.priority, _name(part[0][0])))
    grouped: dict[tuple[int, tuple[str, ...]], WaitingClass] = {}
    mixed: dict[tuple[int, tuple[str, ...]], WaitingClass] = {}
    for pods, wish in split:
        pod_class = table.of(pods[0], bound=False)
        key = (pod_class.number, wish.sectors)
        known = grouped.get(key)
        if known is None:
            known = WaitingClass(pod_class=pod_class, sectors=wish.sectors, pods=[*pods])
            grouped[key] = known
        else:
            known.pods += pods
            mixed[key] = known
        known.nominated |= wish.group.traits.nominated
    for known in mixed.values():
        known.pods.sort(key=_name)
    return sorted(grouped.values(), key=_largest_first)


_name = attrgetter("key.namespace", "key.name", "key.uid")


def _by_name(group: PodGroup) -> list[Pod]:
    """The pods of one namespace by name; lists of the API server come that way already."""
    if len(group.pods) == 1:
        return group.pods
    names = list(map(attrgetter("key.name"), group.pods))
    in_order = all(map(lt, names, islice(names, 1, None)))
    return group.pods if in_order else sorted(group.pods, key=_name)


def _largest_first(waiting: WaitingClass) -> tuple[object, ...]:
    """By priority, then CPU and memory relative to each other, then name."""
    requests = waiting.pod_class.spec.requests
    size = max(requests.get("cpu", 0) / 1000, requests.get("memory", 0) / 2**32)
    return (-waiting.pod_class.spec.priority, -size, waiting.pods[0].key)


def _by_node(groups: Iterable[PodGroup], nodes: dict[NodeName, Node]) -> dict[NodeName, list[Pod]]:
    found: defaultdict[NodeName, list[Pod]] = defaultdict(list)
    for group in groups:
        for pod in group.pods:
            if pod.node_name is not None:
                found[pod.node_name].append(pod)
    return {name: pods for name, pods in found.items() if name in nodes}


def _offers(
    inventory: Inventory,
    settings: PlannerSettings,
    daemons: tuple[PodSpec, ...],
    limits: dict[NodeName, FrozenMap[str, int | None]],
) -> dict[FleetKey, NewNode]:
    """What a new node of each fleet is; volume limits as on its own nodes, else as EC2 states."""
    found: dict[FleetKey, NewNode] = {}
    for status in inventory.fleets:
        known: dict[str, int | None] = {}
        for node in status.nodes:
            for driver, limit in limits.get(node.name, NO_LIMITS).items():
                if limit is not None:
                    least = known.get(driver)
                    known[driver] = limit if least is None else min(limit, least)
        if EBS_DRIVER not in known:
            types = (option.instance_type for option in status.settings.options)
            known[EBS_DRIVER] = least_ebs_limit(types)
        found[status.key] = new_node(
            status, inventory.instance_of_node, settings.reserved, daemons, known
        )
    return found


def _seat_launching(cycle: Cycle) -> None:
    """Add a row per node that EC2 owes; an unavailable fleet's debts do not count."""
    for status in cycle.inventory.fleets:
        coming = status.launching
        if status.max is not None:
            coming = max(0, min(status.current, status.max) - status.joined)
        if coming and not status.unavailable:
            first = cycle.sim.add_row(cycle.offers[status.key].row, coming)
            for number in range(coming):
                cycle.seats[first + number] = Seat(key=status.key, number=number, launching=True)
