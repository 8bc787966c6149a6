"""Takes the inventory: joins config, EC2 and cluster per fleet and region."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.binding import Binding
from reconciler.model.cluster import Node
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.planner.clocks import is_skewed
from reconciler.planner.fleets.binding import judge_binding
from reconciler.planner.fleets.health import (
    MISSING,
    SILENT,
    HealthSignals,
    launched_to_join,
    read_signs,
    saved_states_after,
    unavailable,
)
from reconciler.planner.fleets.instances.in_service import find_joined, names_set_aside
from reconciler.planner.fleets.instances.orphans import find_orphans
from reconciler.planner.fleets.instances.stuck import (
    StuckInstance,
    find_at_work,
    find_due,
    find_ended,
    find_unjoined,
    names_taken_over,
)
from reconciler.planner.fleets.interrupted_pools import pools_after
from reconciler.planner.fleets.inventory import FleetStatus, Inventory
from reconciler.planner.fleets.live_fleet import live_fleets
from reconciler.planner.fleets.owners import owners_of
from reconciler.planner.fleets.updates.halts import halted_after, with_resumed
from reconciler.planner.fleets.updates.outdated import find_outdated
from reconciler.planner.fleets.updates.rolling_update import find_updates
from reconciler.planner.nodes.duplicate_nodes import find_duplicate_nodes, names_only
from reconciler.planner.nodes.ending import ending_nodes
from reconciler.planner.nodes.interruptions import find_noticed
from reconciler.planner.safety_stop import is_suspicious
from reconciler.planner.settings import FleetSettings, PlannerSettings


def build_inventory(snapshot: Snapshot, settings: PlannerSettings) -> Inventory:
    """Join the config's fleets with EC2's and with the nodes that they launched."""
    cloud = snapshot.cloud
    instance_of_node = _instances_by_node(snapshot)
    ended, leaving = ending_nodes(snapshot, instance_of_node)
    live = live_fleets(cloud)
    duplicates = find_duplicate_nodes(snapshot.cluster.nodes)
    owners = owners_of(snapshot, settings, instance_of_node, live, names_only(duplicates))
    nodes = _by_fleet((n for n in snapshot.cluster.nodes if n.name not in ended), owners)
    orphans = find_orphans(snapshot, settings)
    due = find_due(snapshot, settings)
    stuck, hidden = find_unjoined(snapshot, settings, due, orphans.hidden)
    shown = _regions_shown(cloud)
    at_work = find_at_work(due)
    dead = frozenset(
        stuck_instance.node.name for stuck_instance in stuck if stuck_instance.node is not None
    )
    joined = find_joined(snapshot, settings, nodes, shown, instance_of_node, at_work, dead)
    binding = judge_binding(snapshot, settings)
    doubtful = _is_doubtful(snapshot, binding, stuck, owners)
    # That an instance ended by itself is known from EC2 alone.
    believed = (*find_ended(snapshot, settings), *(() if doubtful else stuck))
    signs = read_signs(snapshot, settings, live, believed, joined)
    known = saved_states_after(snapshot, signs, settings)
    saved_states = with_resumed(known, snapshot.cluster.resumed_updates)
    aside = names_set_aside(instance_of_node)
    joiner = _FleetJoiner(snapshot, settings, nodes, joined, aside, signs, saved_states)
    statuses = joiner.statuses()
    rebalance = settings.drains_for_rebalance
    noticed = find_noticed(snapshot, owners, leaving, binding, rebalance=rebalance)
    updates = find_updates(
        statuses, instance_of_node, believed, noticed, saved_states, snapshot, settings
    )
    saved_states = halted_after(saved_states, statuses, updates)
    return Inventory(
        fleets=_with_unproven_closed(statuses, binding, stuck),
        fleet_of_node=owners,
        instance_of_node=instance_of_node,
        leaving=leaving,
        binding=binding,
        stuck=stuck,
        stuck_nodes=dead,
        hidden=hidden,
        doubtful=doubtful,
        taken_over=names_taken_over(snapshot.cluster.nodes, cloud.instances if cloud else ()),
        duplicate_nodes=duplicates,
        regions_shown=shown,
        orphans=orphans,
        interrupted={
            n: interruption_notice
            for n, interruption_notice in noticed.items()
            if interruption_notice.in_force(snapshot.at)
        },
        noticed=noticed,
        outdated=find_outdated(statuses, instance_of_node, noticed, updates, snapshot.at),
        updates=updates,
        fleet_states=tuple(saved_states[place] for place in sorted(saved_states)),
        interrupted_pools=pools_after(snapshot, settings, owners, binding),
    )


def _is_doubtful(
    snapshot: Snapshot,
    binding: Binding,
    stuck: Sequence[StuckInstance],
    owners: Mapping[NodeName, FleetKey],
) -> bool:
    """Return `Inventory.doubtful`: such an observation says nothing about fleets either.

    After an outage of the API server, nodes that were launched just before are not Ready yet.
    """
    if not binding.may_remove or is_skewed(snapshot):
        return True
    return is_suspicious(len(stuck), len(owners), snapshot)


def _by_fleet(
    nodes: Iterable[Node], owners: Mapping[NodeName, FleetKey]
) -> dict[FleetKey, list[Node]]:
    """Return the nodes of each fleet."""
    found: dict[FleetKey, list[Node]] = {}
    for node in nodes:
        if node.name in owners:
            found.setdefault(owners[node.name], []).append(node)
    return found


def _instances_by_node(snapshot: Snapshot) -> dict[NodeName, Instance]:
    known = (
        {instance.id: instance for instance in snapshot.cloud.instances} if snapshot.cloud else {}
    )
    ids = [(node.name, node.instance_id) for node in snapshot.cluster.nodes]
    return {name: known[each] for name, each in ids if each is not None and each in known}


def _regions_shown(cloud: CloudState | None) -> frozenset[Region]:
    if cloud is None or not cloud.instances_known:
        return frozenset()
    return frozenset(instance.region for instance in cloud.instances) - cloud.silent


def _is_listed(key: FleetKey, cloud: CloudState | None, settings: PlannerSettings) -> bool:
    """Return whether a plan has the fleet: home ones always, others if their region was asked.

    One whose region does not answer may be launching: others must not stand in for it at once.
    """
    if cloud is None or key.region == settings.home_region:
        return True
    return key.region in cloud.regions | cloud.silent


def _with_unproven_closed(
    statuses: Sequence[FleetStatus], binding: Binding, stuck: Iterable[StuckInstance]
) -> tuple[FleetStatus, ...]:
    """Return the statuses; fleets that the verdict closes are asked for nothing.

    A fleet whose instances are not nodes of this cluster would launch more of the same. Fleets
    without such an instance may be tried: the first node that joins decides the question.
    """
    if not binding.contradicted:
        return tuple(statuses)
    counts = Counter(stuck_instance.key for stuck_instance in stuck if stuck_instance.node is None)
    return tuple(
        _closed(status, counts[status.key]) if status.key in counts else status
        for status in statuses
    )


def _closed(status: FleetStatus, count: int) -> FleetStatus:
    """Return the status of a fleet of which so many instances seem not to be nodes of ours."""
    why = (
        f"{count} of its instances never became a node of this cluster, and nothing proves "
        "that it is theirs: none is ended, and no more are launched (unproven-cluster)"
    )
    return replace(status, unavailable=why, unavailable_kind="unproven", launched_to_join=0)


@dataclass(frozen=True, slots=True)
class _FleetJoiner:
    """Joins each fleet of the config with what EC2 and the cluster show of it."""

    snapshot: Snapshot
    settings: PlannerSettings
    nodes: Mapping[FleetKey, Sequence[Node]]
    """The nodes of each fleet."""
    joined: Mapping[FleetKey, frozenset[NodeName]]
    """Those that have joined."""
    set_aside: frozenset[NodeName]
    signs: Mapping[FleetKey, HealthSignals]
    """What EC2 shows of each fleet; empty without EC2's answers."""
    saved_states: Mapping[tuple[str, Region], SavedFleetState]

    def statuses(self) -> list[FleetStatus]:
        """Return the fleets that a plan has, in the order of `Inventory.fleets`."""
        return [
            self._status(key, fleet)
            for fleet in self.settings.fleets()
            for key in fleet.fleet_keys()
            if key in self.nodes or _is_listed(key, self.snapshot.cloud, self.settings)
        ]

    def _status(self, key: FleetKey, fleet: FleetSettings) -> FleetStatus:
        """Return the status of a fleet in one region."""
        nodes, sign = tuple(self.nodes.get(key, ())), self.signs.get(key)
        saved = self.saved_states.get((key.name, key.region))
        live = sign.live if sign else None
        if sign is None:
            state, current = "active", len(nodes)
        elif live is None:
            state, current = SILENT if sign.silent else MISSING, 0
        elif live.counts_units:
            state, current = live.state, sign.provided
        else:
            state, current = live.state, live.target_capacity
        init_seconds = self.settings.instance_init_seconds
        kind, why = unavailable(state, sign, saved, self.snapshot.at, init_seconds)
        return FleetStatus(
            key=key,
            settings=fleet,
            live=live,
            state=state,
            current=current,
            nodes=nodes,
            joined_nodes=self.joined.get(key, frozenset()),
            min=_minimum(key, fleet, live, self.settings),
            tier=_tier(key, fleet, self.settings),
            unavailable=why,
            unavailable_kind=kind,
            set_aside=self.set_aside.intersection(node.name for node in nodes),
            provided=sign.provided if sign else len(nodes),
            launched_to_join=launched_to_join(state, sign, saved),
            silent_since=saved.silent_since if saved else None,
        )


def _tier(key: FleetKey, fleet: FleetSettings, settings: PlannerSettings) -> int:
    """Return `FleetStatus.tier`; a group that was found knows only the regions that it is in."""
    found = settings.discovery is not None and not fleet.sector
    order = settings.regions if found else fleet.regions
    return order.index(key.region) if key.region in order else len(order)


def _minimum(
    key: FleetKey, fleet: FleetSettings, live: Fleet | None, settings: PlannerSettings
) -> int:
    """Return the larger of the config's minimum, which one region keeps, and the group's own.

    EC2 ends nothing below a group's own minimum, and accepts no desired capacity above its MaxSize.
    A fleet whose target counts units is held at no minimum: it is asked for nothing.
    """
    if live is not None and live.counts_units:
        return 0
    keeps = key.region == fleet.minimum_region(settings.home_region)
    least = fleet.min_capacity if keeps else 0
    if live is None:
        return least
    most = least if live.max_size is None else live.max_size
    return max(min(least, most), live.min_size or 0)
