"""Opens a plan: joins a snapshot and a config into the what-if cluster as it is now."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from operator import attrgetter
from types import MappingProxyType

from reconciler.model.cluster import Node, Pod
from reconciler.model.counted_pods import counts
from reconciler.model.ebs_attach_limits import least_ebs_limit
from reconciler.model.grouping import grouped
from reconciler.model.ids import FleetKey, NodeName, PodKey
from reconciler.model.snapshot import ClusterState, Snapshot
from reconciler.model.volumes import EBS_DRIVER
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.demand import Demand, find_demand, without_namespaces
from reconciler.planner.disruption.drains.stuck_terminating import parted_by_stuck_terminating
from reconciler.planner.fleets.departing import with_departing
from reconciler.planner.fleets.discovered import with_discovered
from reconciler.planner.fleets.displaced_pods import displaced_pods, with_displaced
from reconciler.planner.fleets.instances.protected_instances import still_protected
from reconciler.planner.fleets.instances.stuck_ends import StuckEndLedger, limits_for
from reconciler.planner.fleets.inventory import Inventory
from reconciler.planner.fleets.inventory_building import build_inventory
from reconciler.planner.fleets.live_fleet import with_config_names
from reconciler.planner.fleets.new_nodes.daemons_that_fit import Daemons
from reconciler.planner.fleets.new_nodes.devices import with_devices_of_fleets
from reconciler.planner.fleets.new_nodes.learned_resources import with_learned
from reconciler.planner.fleets.new_nodes.new_node import NewNode, daemons_of, new_node
from reconciler.planner.fleets.new_nodes.shown_nodes import with_shown_nodes
from reconciler.planner.fleets.spot.spot_return import SpotReturn, with_spot_returns
from reconciler.planner.headroom.pieces import headroom_pods
from reconciler.planner.launching_nodes import plan_launching
from reconciler.planner.node_rows import node_row
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.nodes.starting import is_joining
from reconciler.planner.placement.classes import ClassTable
from reconciler.planner.placement.kinds import HOSTNAME, ZONE_KEYS
from reconciler.planner.placement.label_keys import OfferedNames, topology_keys
from reconciler.planner.placement.one_pod_claims import Place, RoughPlaces
from reconciler.planner.placement.simulation import NO_LIMITS, Simulation
from reconciler.planner.placement.volumes import VolumeResolver
from reconciler.planner.pod_disruption_budgets import BudgetLedger
from reconciler.planner.pod_groups import PodGroup, group_pods
from reconciler.planner.pods_by_class import bound_by_class, waiting_classes
from reconciler.planner.settings import PlannerSettings
from reconciler.planner.view import ClusterView
from reconciler.planner.work_shares import STEPS_MAX, World, within_work

_VolumeLimits = Mapping[NodeName, Mapping[str, int | None]]
_NO_NAMESPACES: Mapping[str, str] = MappingProxyType({})


def open_plan(
    snapshot: Snapshot,
    settings: PlannerSettings,
    also: Iterable[Pod] = (),
    left_out: Mapping[str, str] = _NO_NAMESPACES,
) -> PlanBuilder:
    """Open a plan with everything that EC2 and the cluster add to the config.

    These are groups found by their tags, names that the config gives to groups, devices that new
    nodes will have, and departing fleets.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        also: Pods that are not to be placed, about which questions will be asked.
        left_out: Namespaces whose pending pods are not planned for, and why.
    """
    settings = with_discovered(snapshot, settings)
    named = with_config_names(snapshot, settings)
    named, unequipped = with_devices_of_fleets(named, settings)
    departing = with_departing(named, settings)
    return open_builder(named, departing, also, unequipped, left_out)


def open_builder(
    snapshot: Snapshot,
    settings: PlannerSettings,
    also: Iterable[Pod] = (),
    unequipped: frozenset[NodeName] = frozenset(),
    left_out: Mapping[str, str] = _NO_NAMESPACES,
) -> PlanBuilder:
    """Join all facts and set up the what-if cluster as it is now.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        also: Pods that get a class, but neither run nor wait: for questions about them.
        unequipped: Nodes whose devices are not registered yet.
        left_out: Namespaces whose pending pods are not planned for, and why.
    """
    found = _collect_facts(snapshot, settings, also)
    demand = _demand(found, settings, left_out)
    on_new_nodes = _on_new_nodes(found.offers.values())
    pods = [*_distinct(found, demand), *found.asked_about, *on_new_nodes]
    table = ClassTable(pods, snapshot.cluster.namespaces, found.resolver, found.offered)
    running = bound_by_class(_excluding(found.bound, {pod.key for pod in found.displaced}), table)
    waiting = waiting_classes(demand.unschedulable, table)
    for pod in found.asked_about:
        table.of(pod, bound=False)
    for pod in on_new_nodes:
        table.of_daemon(pod)
    nodes = {node.name: node for node in sorted(snapshot.cluster.nodes, key=lambda n: n.name)}
    row_of = {name: row for row, name in enumerate(nodes)}
    sim = _with_nodes(Simulation(table), nodes, found, settings)
    sim.load((pod_class, _rows(members, row_of)) for pod_class, members in running)
    alive, stuck = parted_by_stuck_terminating(found.bound, nodes, snapshot.at)
    pods_on = _by_node(alive, nodes)
    view = ClusterView(
        snapshot=snapshot,
        settings=settings,
        inventory=found.inventory,
        table=table,
        demand=demand,
        nodes=nodes,
        row_of=row_of,
        offers=found.offers,
        daemons=found.daemons,
        running=tuple(found.bound),
        pods_on=pods_on,
        nodes_in_use=frozenset(name for name, pods in pods_on.items() if any(map(counts, pods))),
        draining=frozenset(name for name, node in nodes.items() if is_draining(node)),
        stuck_terminating_on=_by_node(stuck, nodes),
        finished_on=_by_node([g for g in found.groups if g.traits.finished], nodes),
        statuses={status.key: status for status in found.inventory.fleets},
        displaced={pod.key: pod.node_name for pod in found.displaced if pod.node_name is not None},
        spot_returns=found.spot_returns,
        unequipped=unequipped,
        refused_ends={
            protected_instance.instance: protected_instance.at
            for protected_instance in still_protected(snapshot)
        },
    )
    stuck_ends = _stuck_end_ledger(snapshot, settings, found.inventory)
    builder = PlanBuilder(view, sim, waiting, BudgetLedger(snapshot.cluster.budgets), stuck_ends)
    plan_launching(builder)
    return builder


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Facts:
    """What there is, before pods have classes and nodes have rows."""

    snapshot: Snapshot
    inventory: Inventory
    spot_returns: Sequence[SpotReturn]
    groups: Sequence[PodGroup]
    """All pods."""
    bound: Sequence[PodGroup]
    """Those that have a node, and are not finished."""
    displaced: Sequence[Pod]
    """Those of them that count as demand: EC2 takes their node back."""
    asked_about: Sequence[Pod]
    """Pods that neither run nor wait: questions are about them, or they stand for headroom."""
    volume_limits: _VolumeLimits
    offers: Mapping[FleetKey, NewNode]
    daemons: Daemons
    offered: OfferedNames
    resolver: VolumeResolver


def _collect_facts(snapshot: Snapshot, settings: PlannerSettings, also: Iterable[Pod]) -> _Facts:
    """Return the nodes, the pods, what a new node of each fleet is, and what volumes require."""
    cluster = snapshot.cluster
    inventory = _with_new_nodes(build_inventory(snapshot, settings), settings, snapshot.at)
    inventory, spot_returns = with_spot_returns(inventory, settings, snapshot.at)
    groups = group_pods(cluster.pods)
    volume_limits = {csi.name: csi.limits for csi in cluster.csi_nodes}
    daemons = daemons_of(cluster.daemon_sets, groups, cluster.ignored, cluster.namespaces)
    offers = _offers(inventory, settings, daemons, volume_limits)
    asked_about = [*also, *headroom_pods(settings, inventory)]
    return _Facts(
        snapshot=snapshot,
        inventory=inventory,
        spot_returns=spot_returns,
        groups=groups,
        bound=[g for g in groups if g.traits.bound and not g.traits.finished],
        displaced=displaced_pods(cluster.pods, inventory.interrupted),
        asked_about=asked_about,
        volume_limits=volume_limits,
        offers=offers,
        daemons=daemons,
        offered=_offered(cluster.nodes, offers.values(), asked_about),
        resolver=_resolver(cluster, groups, offers.values()),
    )


def _demand(found: _Facts, settings: PlannerSettings, left_out: Mapping[str, str]) -> Demand:
    """Return the pods that need a place, as far as one plan may look at them."""
    world = _world(found.snapshot.cluster, found.offers.values(), found.offered, found.resolver)
    whole = with_displaced(find_demand(found.groups, settings), found.displaced, settings)
    demand = without_namespaces(whole, left_out)
    return within_work(demand, found.bound, world, found.snapshot.at, STEPS_MAX)


def _with_new_nodes(inventory: Inventory, settings: PlannerSettings, at: datetime) -> Inventory:
    """Return the inventory with what is known about each fleet's next node."""
    return with_learned(with_shown_nodes(inventory, settings, at), at)


def _on_new_nodes(offers: Iterable[NewNode]) -> list[Pod]:
    """Return the daemons' pods that come with new nodes; others may be a tenant's, by thousands."""
    return list({id(pod): pod for offer in offers for pod in offer.row.daemons}.values())


def _resolver(
    cluster: ClusterState, groups: Iterable[PodGroup], offers: Iterable[NewNode]
) -> VolumeResolver:
    return VolumeResolver(
        cluster.claims,
        cluster.volumes,
        cluster.storage_classes,
        _with_volumes(groups),
        frozenset(node.name for node in cluster.nodes),
        RoughPlaces(_places(cluster.nodes, offers)).may_take,
    )


def _places(nodes: Iterable[Node], offers: Iterable[NewNode]) -> Iterable[Place]:
    yield from (((node.labels,), node.allocatable) for node in nodes)
    yield from ((offer.row.variants, offer.row.allocatable) for offer in offers)


def _with_nodes(
    sim: Simulation, nodes: Mapping[NodeName, Node], found: "_Facts", settings: PlannerSettings
) -> Simulation:
    """Return the what-if cluster with a row for each node, in this order."""
    inventory, joining = found.inventory, _joining(found, settings)
    sim.add_rows(
        [
            node_row(
                node,
                closed=name in inventory.leaving
                or name in inventory.interrupted
                or name in joining,
                has_hostname=name not in joining,
                volume_limits=found.volume_limits.get(name, NO_LIMITS),
            )
            for name, node in nodes.items()
        ]
    )
    return sim


def _joining(found: "_Facts", settings: PlannerSettings) -> frozenset[NodeName]:
    """Return the nodes of fleets that take no pods yet.

    Their rows as launching capacity stand for them: a spread by hostname must not count them twice,
    as nodes that stay empty, and pods that tolerate a start-up taint must not use them twice.
    """
    inventory, at = found.inventory, found.snapshot.at
    return frozenset(
        node.name
        for status in inventory.fleets
        for node in status.nodes
        if node.name not in status.joined_nodes
        and is_joining(node, inventory.instance_of_node.get(node.name), at, settings)
    )


def _excluding(groups: Sequence[PodGroup], moving: Collection[PodKey]) -> Sequence[PodGroup]:
    """Return the groups without the pods that count as demand, which would be counted twice."""
    if not moving:
        return groups
    kept = ([pod for pod in group.pods if pod.key not in moving] for group in groups)
    parts = zip(groups, kept, strict=True)
    return [PodGroup(group.traits, pods) for group, pods in parts if pods]


def _stuck_end_ledger(
    snapshot: Snapshot, settings: PlannerSettings, inventory: Inventory
) -> StuckEndLedger:
    unjoined = sum(orphan.node is None for orphan in inventory.orphans.found)
    unjoined += sum(stuck_instance.node is None for stuck_instance in inventory.stuck)
    nodes = len(inventory.fleet_of_node)
    limits = limits_for(inventory.binding, unjoined, nodes, settings.stuck_ends)
    return StuckEndLedger(snapshot.cluster.stuck_ends, limits, snapshot.at)


def _world(
    cluster: ClusterState,
    offers: Collection[NewNode],
    offered: OfferedNames,
    resolver: VolumeResolver,
) -> World:
    """Return what pending pods are compared with."""
    of_new_nodes = chain.from_iterable(offer.row.variants for offer in offers)
    return World(
        rows=len(cluster.nodes) + len(offers),
        labels=[*(node.labels for node in cluster.nodes), *of_new_nodes],
        label_keys=offered.label_keys,
        namespaces=len(cluster.namespaces),
        claims=resolver.compared_with,
    )


def _offered(
    nodes: Iterable[Node], offers: Iterable[NewNode], asked_about: Iterable[Pod]
) -> OfferedNames:
    """Return what any node has, a new one would have, or questions are about."""
    label_keys = {HOSTNAME, *ZONE_KEYS}
    resources: set[str] = set()
    label_keys.update(*(node.labels for node in nodes))
    resources.update(*{node.allocatable for node in nodes})
    for offer in offers:
        label_keys.update(*offer.row.variants)
        resources.update(offer.row.allocatable)
    for pod in asked_about:
        resources.update(pod.spec.requests)
    return OfferedNames(
        label_keys=frozenset(label_keys | topology_keys(pod.spec for pod in asked_about)),
        resources=frozenset(resources),
    )


def _distinct(found: _Facts, demand: Demand) -> Iterable[Pod]:
    """Return pods that stand for all that run or wait."""
    groups = (*found.bound, *(waiting.group for waiting in demand.unschedulable))
    return chain.from_iterable(group.distinct for group in groups)


def _with_volumes(groups: Iterable[PodGroup]) -> list[Pod]:
    """Return the pods that have claims, unless they are finished."""
    having = [g.pods for g in groups if g.traits.volumes and not g.traits.finished]
    return list(chain.from_iterable(having))


def _rows(pods: Iterable[Pod], row_of: Mapping[NodeName, int]) -> list[int]:
    """Return the rows of the pods' nodes, for nodes that are known."""
    found = map(row_of.get, map(attrgetter("node_name"), pods))
    return [row for row in found if row is not None]


def _by_node(groups: Iterable[PodGroup], nodes: dict[NodeName, Node]) -> dict[NodeName, list[Pod]]:
    pods = list(chain.from_iterable(group.pods for group in groups))
    found = grouped(map(attrgetter("node_name"), pods), pods)
    return {name: here for name, here in found.items() if name in nodes}


def _offers(
    inventory: Inventory,
    settings: PlannerSettings,
    daemons: Daemons,
    limits: _VolumeLimits,
) -> dict[FleetKey, NewNode]:
    """Return what a new node of each fleet is.

    Volume limits are those of its own nodes, or else what EC2 documents.
    """
    new_nodes: dict[FleetKey, NewNode] = {}
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
        new_nodes[status.key] = new_node(
            status, settings.reserve.of(status.settings.provider), daemons, known
        )
    return new_nodes
