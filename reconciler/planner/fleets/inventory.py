"""What each fleet has now: config, EC2 and cluster joined per fleet and region."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.model.binding import Binding
from reconciler.model.cluster import NO_RESOURCES, Node, Resources, Taint
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.saved_state import InterruptedPool, SavedFleetState
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.model.unplaceable import UnavailableKind
from reconciler.planner.clocks import is_skewed
from reconciler.planner.fleets.binding import judge_binding
from reconciler.planner.fleets.health import (
    MISSING,
    SILENT,
    Signs,
    launched_to_join,
    read_signs,
    saved_states_after,
    unavailable,
)
from reconciler.planner.fleets.instances.in_service import count_joined, names_set_aside
from reconciler.planner.fleets.instances.orphans import Orphans, find_orphans
from reconciler.planner.fleets.instances.stuck import (
    Hidden,
    StuckInstance,
    find_at_work,
    find_unjoined,
    names_taken_over,
)
from reconciler.planner.fleets.interrupted_pools import pools_after
from reconciler.planner.fleets.live import live_fleets
from reconciler.planner.fleets.owners import owners_of
from reconciler.planner.fleets.updates.halts import halted_after, with_resumed
from reconciler.planner.fleets.updates.outdated import Outdated, find_outdated
from reconciler.planner.fleets.updates.rolling_update import find_updates
from reconciler.planner.fleets.updates.update import Update
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.nodes.duplicate_nodes import (
    DuplicateNodes,
    find_duplicate_nodes,
    names_only,
)
from reconciler.planner.nodes.ending import ending_nodes
from reconciler.planner.nodes.interruptions import InterruptionNotice, find_noticed
from reconciler.planner.safety_stop import is_suspicious
from reconciler.planner.settings import FleetSettings, PlannerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """The state of one fleet in one region."""

    key: FleetKey
    settings: FleetSettings
    live: Fleet | None
    """None when planning offline without EC2's answers, and for a missing fleet."""
    state: str
    current: int
    """The present target capacity in nodes. If it counts units: the instances that there are."""
    nodes: tuple[Node, ...]
    """Its nodes in the cluster, without leaving ones."""
    joined: int
    """How many of its nodes have joined: not launching, not yet Ready, not in standby; and members
    that have long been at work under the node of a predecessor."""
    min: int
    """Its minimum, from config and group."""
    unavailable: str
    """Why it cannot be asked for more now; empty if it can."""
    unavailable_kind: UnavailableKind = ""
    """The same for programs."""
    tier: int = 0
    """How many regions are preferred to its own, by its list, or by the config's for a found
    group."""
    set_aside: frozenset[NodeName] = frozenset()
    """Its nodes that do not count in its target, as they are in standby."""
    provided: int = 0
    """How many of its instances EC2 has launched, as far as anything shows them."""
    launched_to_join: int = 0
    """How many of them may still become nodes."""
    silent_since: datetime | None = None
    """Since when its region does not answer; None while it answers."""
    seen: Resources | None = None
    """The least that its Ready nodes of the present launch template offer; None without any."""
    seen_by_type: FrozenMap[str, Resources] = field(default_factory=FrozenMap)
    """The same by instance type."""
    learned: Resources = NO_RESOURCES
    """What such nodes offered, of the resources that they state from their start."""
    shown_labels: Labels = NO_LABELS
    """Labels that its nodes have or had in common, if the config does not have all of them."""
    shown_taints: tuple[Taint, ...] = ()
    """The same for taints."""

    @property
    def labels(self) -> Labels:
        """Return the labels of a new node: what its nodes show, else what config and tags say."""
        stated, shown = self.settings.labels, self.shown_labels
        return Labels({**stated, **shown}) if shown else stated

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Return the taints of a new node."""
        return (*self.settings.taints, *self.shown_taints)

    @property
    def launching(self) -> int:
        """Return how many nodes EC2 owes."""
        return max(0, self.current - self.joined)

    @property
    def expected(self) -> int:
        """Return how many nodes to count on: those owed, or launched if EC2 launches no more.

        A fleet without capacity in one zone, for example, still brings the nodes that started
        elsewhere.
        """
        return self.launched_to_join if self.unavailable else self.launching

    @property
    def out_of_reach(self) -> bool:
        """Return whether EC2 does not show it, or does not answer: its target cannot be changed."""
        return self.state in {MISSING, SILENT}

    @property
    def may_end_nothing(self) -> bool:
        """Return whether none of its instances can be ended now: it is out of reach, or busy."""
        return self.out_of_reach or bool(self.live and self.live.removals_halted)

    @property
    def max(self) -> int | None:
        """Return its maximum, from config and group; None without a limit."""
        limits = [self.settings.max_capacity, self.live.max_size if self.live else None]
        return min((x for x in limits if x is not None), default=None)

    @property
    def draining(self) -> tuple[Node, ...]:
        """Return the nodes with our draining taint that count in the target."""
        return tuple(n for n in self.nodes if is_draining(n) and n.name not in self.set_aside)

    @property
    def joined_or_launching(self) -> int:
        """Return how many nodes it has or is owed: the base to which new nodes are added."""
        return max(self.current, self.joined)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All fleets, and which node and instance belongs to which."""

    fleets: tuple[FleetStatus, ...]
    """In the order of the config, and by preference of regions within a fleet."""
    fleet_of_node: Mapping[NodeName, FleetKey]
    instance_of_node: Mapping[NodeName, Instance]
    leaving: frozenset[NodeName]
    """Nodes whose instance is gone, or is being ended by EC2: no destination, no capacity."""
    binding: Binding = field(default_factory=Binding)
    """Whether cluster and fleets belong together."""
    stuck: tuple[StuckInstance, ...] = ()
    """Our instances that never became nodes."""
    hidden: Hidden | None = None
    """Such instances, and orphans, that are kept by a pod running on a node that is not listed."""
    doubtful: bool = False
    """Whether the observation is more likely wrong than true: then `stuck` has no consequences."""
    taken_over: frozenset[NodeName] = frozenset()
    """Nodes under which the successor of their machine may be running."""
    duplicate_nodes: DuplicateNodes = field(default_factory=dict)
    """Nodes whose instance other nodes claim too; those others belong to no fleet."""
    regions_shown: frozenset[Region] = frozenset()
    """Where EC2 showed instances and no provider was silent: an instance that is missing there
    is gone, or not of our fleets."""
    orphans: Orphans = field(default_factory=Orphans)
    """Instances of ours whose fleet is gone; their nodes belong to no fleet."""
    interrupted: Mapping[NodeName, InterruptionNotice] = field(default_factory=dict)
    """Nodes of our fleets that EC2 is about to take back: no destination, no lasting capacity."""
    noticed: Mapping[NodeName, InterruptionNotice] = field(default_factory=dict)
    """These, and those with a notice not in force: of a rebalance, or for a later time."""
    outdated: Mapping[NodeName, Outdated] = field(default_factory=dict)
    """Nodes of our fleets that are to be replaced in time: no destination for pods of others."""
    updates: Mapping[FleetKey, Update] = field(default_factory=dict)
    """Rolling updates that are not finished."""
    fleet_states: tuple[SavedFleetState, ...] = ()
    """What must be remembered about fleets, including what this snapshot adds."""
    interrupted_pools: tuple[InterruptedPool, ...] = ()
    """Where EC2 took spot instances back recently: new ones are preferably bought elsewhere."""

    @property
    def departing(self) -> frozenset[NodeName]:
        """Return nodes of departing fleets: no destination either, or they would never leave."""
        going = (status for status in self.fleets if status.settings.departing)
        return frozenset(node.name for status in going for node in status.nodes)

    @property
    def passing(self) -> frozenset[NodeName]:
        """Return nodes to be replaced, now or by the next batches: no destination for pods."""
        return frozenset(self.outdated).union(*(u.passing for u in self.updates.values()))

    def is_unseen(self, node: Node, key: FleetKey) -> bool:
        """Return whether EC2 shows instances of the node's region, but not the node's."""
        named = node.instance_id is not None and node.name not in self.instance_of_node
        return named and key.region in self.regions_shown


def take_inventory(snapshot: Snapshot, settings: PlannerSettings) -> Inventory:
    """Join the config's fleets with EC2's and with the nodes that they launched."""
    cloud = snapshot.cloud
    instance_of_node = _instances_by_node(snapshot)
    ended, leaving = ending_nodes(snapshot, instance_of_node)
    live = live_fleets(cloud)
    duplicates = find_duplicate_nodes(snapshot.cluster.nodes)
    owners = owners_of(snapshot, settings, instance_of_node, live, names_only(duplicates))
    nodes = _by_fleet((n for n in snapshot.cluster.nodes if n.name not in ended), owners)
    orphans = find_orphans(snapshot, settings)
    stuck, hidden = find_unjoined(snapshot, settings, orphans.hidden)
    shown, aside = _regions_shown(cloud), names_set_aside(instance_of_node)
    at_work = find_at_work(snapshot, settings)
    joined = count_joined(snapshot, settings, nodes, shown, instance_of_node, at_work)
    binding = judge_binding(snapshot, settings)
    # An observation that is more likely wrong than true says nothing about fleets either.
    doubtful = (
        not binding.may_remove
        or is_skewed(snapshot)
        or is_suspicious(len(stuck), len(owners), snapshot)
    )
    believed = () if doubtful else stuck
    closed = _closed_by(binding, stuck)
    signs = read_signs(snapshot, settings, live, believed, joined)
    known = saved_states_after(snapshot, signs, settings)
    saved_states = with_resumed(known, snapshot.cluster.resumed_updates)
    statuses = [
        _status(
            key,
            fleet,
            (tuple(nodes.get(key, ())), joined.get(key, 0), aside),
            snapshot,
            settings,
            signs.get(key),
            saved_states,
        )
        for fleet in settings.fleets()
        for key in fleet.fleet_keys()
        if key in nodes or _is_listed(key, cloud, settings)
    ]
    rebalance = settings.drains_for_rebalance
    noticed = find_noticed(snapshot, owners, leaving, binding, rebalance=rebalance)
    updates = find_updates(
        statuses, instance_of_node, believed, noticed, saved_states, snapshot, settings
    )
    saved_states = halted_after(saved_states, statuses, updates)
    return Inventory(
        fleets=tuple(_closed(s, closed[s.key]) if s.key in closed else s for s in statuses),
        fleet_of_node=owners,
        instance_of_node=instance_of_node,
        leaving=leaving,
        binding=binding,
        stuck=stuck,
        hidden=hidden,
        doubtful=doubtful,
        taken_over=names_taken_over(snapshot.cluster.nodes, cloud.instances if cloud else ()),
        duplicate_nodes=duplicates,
        regions_shown=shown,
        orphans=orphans,
        interrupted={n: each for n, each in noticed.items() if each.in_force(snapshot.at)},
        noticed=noticed,
        outdated=find_outdated(statuses, instance_of_node, noticed, updates, snapshot.at),
        updates=updates,
        fleet_states=tuple(saved_states[place] for place in sorted(saved_states)),
        interrupted_pools=pools_after(snapshot, settings, owners, binding),
    )


def _by_fleet(
    nodes: Iterable[Node], owners: Mapping[NodeName, FleetKey]
) -> dict[FleetKey, list[Node]]:
    """Return the nodes of each fleet."""
    found: dict[FleetKey, list[Node]] = {}
    for node in nodes:
        if node.name in owners:
            found.setdefault(owners[node.name], []).append(node)
    return found


def _closed_by(binding: Binding, stuck: Iterable[StuckInstance]) -> dict[FleetKey, str]:
    """Return the fleets that are asked for nothing because of the verdict, and why.

    A fleet whose instances are not nodes of this cluster would launch more of the same. Fleets
    without such an instance may be tried: the first node that joins decides the question.
    """
    if not binding.contradicted:
        return {}
    counts = Counter(each.key for each in stuck)
    return {
        key: f"{count} of its instances never became a node of this cluster, and nothing proves "
        "that it is theirs: none is ended, and no more are launched (unproven-cluster)"
        for key, count in counts.items()
    }


def _closed(status: FleetStatus, why: str) -> FleetStatus:
    """Return the status of a fleet whose instances seem not to be nodes of this cluster."""
    return replace(status, unavailable=why, unavailable_kind="unproven", launched_to_join=0)


def _instances_by_node(snapshot: Snapshot) -> dict[NodeName, Instance]:
    known = {each.id: each for each in snapshot.cloud.instances} if snapshot.cloud else {}
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


def _status(
    key: FleetKey,
    fleet: FleetSettings,
    members: tuple[tuple[Node, ...], int, frozenset[NodeName]],
    snapshot: Snapshot,
    settings: PlannerSettings,
    sign: Signs | None,
    saved_states: Mapping[tuple[str, Region], SavedFleetState],
) -> FleetStatus:
    """Return the status; `members` are its nodes, the number that have joined, those set aside."""
    nodes, joined, aside = members
    live = sign.live if sign else None
    saved = saved_states.get((key.name, key.region))
    if sign is None:
        state, current = "active", len(nodes)
    elif live is None:
        state, current = SILENT if sign.silent else MISSING, 0
    elif live.counts_units:
        state, current = live.state, sign.provided
    else:
        state, current = live.state, live.target_capacity
    kind, why = unavailable(state, sign, saved, snapshot.at, settings.instance_init_seconds)
    return FleetStatus(
        key=key,
        settings=fleet,
        live=live,
        state=state,
        current=current,
        nodes=nodes,
        joined=joined,
        min=_minimum(key, fleet, live, settings),
        tier=_tier(key, fleet, settings),
        unavailable=why,
        unavailable_kind=kind,
        set_aside=aside.intersection(node.name for node in nodes),
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
