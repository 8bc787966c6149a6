"""What each fleet has now, and which node and instance belongs to which fleet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.binding import Binding
from reconciler.model.cluster import NO_RESOURCES, Node, Resources, Taint
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.saved_state import InterruptedPool, SavedFleetState
from reconciler.model.unplaceable import UnavailableKind
from reconciler.planner.fleets.health import MISSING, SILENT
from reconciler.planner.fleets.instances.orphans import Orphans
from reconciler.planner.fleets.instances.stuck import StuckInstance, UnlistedNode
from reconciler.planner.fleets.updates.outdated import Outdated
from reconciler.planner.fleets.updates.update import Update
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.nodes.duplicate_nodes import DuplicateNodes
from reconciler.planner.nodes.interruptions import InterruptionNotice
from reconciler.planner.settings import FleetSettings


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
    joined_nodes: frozenset[NodeName]
    """Its nodes that have joined: not launching, not yet Ready, not in standby; and nodes of
    predecessors under which members have long been at work."""
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
    def joined(self) -> int:
        """Return how many nodes have joined."""
        return len(self.joined_nodes)

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
        stated, own = self.settings.max_capacity, self.live.max_size if self.live else None
        if stated is None or own is None:
            return own if stated is None else stated
        return min(stated, own)

    @property
    def draining(self) -> tuple[Node, ...]:
        """Return the nodes with our draining taint that count in the target."""
        draining = [node for node in self.nodes if node.taints and is_draining(node)]
        return tuple(node for node in draining if node.name not in self.set_aside)

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
    """Our instances that never became usable nodes."""
    stuck_nodes: frozenset[NodeName] = frozenset()
    """The nodes of such instances, which never took a pod: they have not joined."""
    hidden: UnlistedNode | None = None
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
