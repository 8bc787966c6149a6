"""The result of a planning cycle: actions in order, reservations, refusals, cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, get_args

from reconciler.model.actions import AnyAction
from reconciler.model.binding import Binding
from reconciler.model.fleet import PriceSource
from reconciler.model.ids import FleetKey, NodeName, PodKey, Region
from reconciler.model.notices import NoticeOutcome
from reconciler.model.saved_state import (
    InterruptedPool,
    LostFleet,
    ProtectedInstance,
    SavedDemandState,
    SavedFleetState,
    SavedRaise,
    StuckEnd,
)
from reconciler.model.snapshot import Ignored
from reconciler.model.unplaceable import Reason, UnavailableKind, Unplaceable


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a pod will run: on a node, on launching capacity, or on a node to be bought.

    Exactly one of `node`, `launching` and `new_node` is set.
    """

    pod: PodKey
    node: NodeName | None = None
    fleet: str | None = None
    region: Region | None = None
    launching: int | None = None
    """Counts from 0 per fleet and region."""
    new_node: int | None = None
    """Counts from 0 per fleet and region."""
    moved_from: NodeName | None = None
    """Set for a pod that the plan moves."""


HeldCode = Literal[
    "safety-stop",
    "unproven-cluster",
    "clock-skew",
    "stuck-cap",
    "protected",
    "termination-protected",
    "unlisted-node",
    "outage",
]
"""The safety measure that holds a node or an instance; `planner/explain/held.py` has the texts."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Held:
    """A node that is kept although a policy would have removed it."""

    node: NodeName
    """Empty if the instance never joined."""
    code: HeldCode
    instance: str = ""
    """Set if there is no node."""
    detail: str = ""
    """What the code does not say, in words; usually empty."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Kept:
    """Why a node is not being removed; shown on request only."""

    node: NodeName
    code: str
    detail: str
    until: datetime | None = field(default=None, compare=False)
    """When this reason ends at the latest; None if it does not end by time alone."""


UpdateState = Literal["waiting", "canary", "rolling", "paused", "closed", "resting", "halted"]
"""`waiting`: the next batch may begin. `canary`: the first new node is launching or watched.
`rolling`: a batch is being replaced. `paused`: between two batches. `closed`: outside of all
maintenance windows. `resting`: old nodes could not be emptied, and new ones were not used.
`halted`: the new version does not work."""
UPDATE_STATES: Final[tuple[UpdateState, ...]] = get_args(UpdateState)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetUpdate:
    """The rolling update of one fleet: it has drifted nodes, and rolling updates are on for it."""

    fleet: str
    region: Region
    version: str
    """The launch template version that its new nodes have."""
    state: UpdateState
    because: str
    """What it waits for, in words."""
    old: int
    """Nodes that are still to be replaced."""
    new: int
    """Nodes that are as the fleet launches them now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedUpdate:
    """A fleet that a person named to resume its rolling update, and what came of that."""

    fleet: str
    """As the person wrote it."""
    done: bool
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """One fleet's numbers before and after the plan."""

    fleet: str
    region: Region
    current: int
    joined: int
    launching: int
    target: int
    min: int
    max: int | None
    state: str
    """EC2's state; `missing` if EC2 does not have the fleet, `unknown` if it does not answer."""
    unavailable: str = ""
    """Why no more nodes can be asked of it now; empty if they can."""
    unavailable_kind: UnavailableKind = ""
    """The same for programs."""
    awaited: int = 0
    """Instances that EC2 was asked for, by this plan or before, and has not launched; 0 while the
    fleet is unavailable."""
    removal: str = ""
    """What its approved removal or replacement waits for; empty if it is not to be removed, or
    has no node left."""
    update: FleetUpdate | None = None
    """Its rolling update; None if it has none, or it is finished."""
    node_usd_per_hour: float = 0.0
    """The price of one new node; if none is known, a usual price for its CPU and memory."""
    rebalances_zones: bool = False
    """Whether its Auto Scaling group may end nodes with pods to even out its zones."""


DriftReason = Literal["launch-template-version", "instance-type", "subnet"]
"""In which respect a node differs from what its fleet launches now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftedNodes:
    """Nodes of one fleet that it would launch differently now, for one reason."""

    fleet: str
    region: Region
    reason: DriftReason
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesByKind:
    """Nodes that the spot rescheduler moves pods off, or onto."""

    kind: Literal["on-demand", "spot"]
    nodes: int
    pods: int
    """Pods on them, without those of DaemonSets, mirror pods and finished ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNodes:
    """Nodes that a plan asks of one fleet for pods and headroom."""

    fleet: str
    region: Region
    nodes: int
    nano_usd_per_hour: int
    """Their price together, in billionths of a dollar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIns:
    """On-demand nodes of one fleet that replace unavailable nodes of a spot fleet for a time."""

    fleet: str
    region: Region
    instead_of: str
    """The spot fleet."""
    nodes: int
    extra_hourly_usd: float
    """What they cost per hour more than the same number of nodes of the spot fleet; 0 without known
    prices."""
    going_back: int = 0
    """How many of them are in the batch that is being replaced by spot nodes."""
    waits: str = ""
    """What the next batch waits for, in words; empty when one may begin, or `spot_return` is off.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomPlan:
    """The result for one item of headroom."""

    sector: str
    asked: str
    """What the config asks for, in words."""
    pieces: int
    """How many pieces of room that makes."""
    missing: int
    """Pieces for which there is neither room nor a node that is launching."""
    because: str
    """Why some are missing; empty when none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Hourly cost of all targets, and the lower bound that shows how good its purchases are."""

    hourly_usd_before: float
    hourly_usd_after: float
    hourly_usd_lower_bound: float
    """The cost of the nodes that the plan leaves, idle ones too, and the least that new nodes for
    the same pods could cost: it says nothing of nodes that may leave later."""
    gap: float
    """(after - lower bound) / after; 0 when the cost is 0."""
    unpriced: tuple[str, ...] = ()
    """Fleets without a known price; they count at a usual price of their CPUs and memory."""
    prices: PriceSource | None = None
    """None: the prices come from no catalogue."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class InterruptedNode:
    """A node that EC2 is taking back."""

    node: NodeName
    empty: bool
    """Whether no counted pod is left on it."""
    seconds: float
    """The time since its drain began; 0 in the plan that begins it."""
    next_step_seconds: float | None = None
    """The time until more is done with its pods than now; None if there is nothing left to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The result of one planning cycle; a pure function of snapshot, settings and clock."""

    at: datetime
    cluster: str
    home_region: Region
    actions: tuple[AnyAction, ...] = ()
    placements: Sequence[Placement] = ()
    """By namespace and name. Values are made when they are read (`model.placements`)."""
    held: tuple[Held, ...] = ()
    unplaceable: tuple[Unplaceable, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    fleets: tuple[FleetPlan, ...] = ()
    cost: Cost
    kept: tuple[Kept, ...] = ()
    no_removals_because: str = ""
    """Why nothing is drained, ended or moved: planning it fails with a bug. Usually empty."""
    fleet_states: tuple[SavedFleetState, ...] = ()
    """The state of fleets to save after this cycle."""
    demands: tuple[SavedDemandState, ...] = ()
    """The same of demand for which nodes were asked."""
    lost_fleets: tuple[LostFleet, ...] = ()
    """The same of fleets that instances name and EC2 does not list."""
    stuck_ends: tuple[StuckEnd, ...] = ()
    """The same of instances that never joined and were terminated in the last hour."""
    binding: Binding = field(default_factory=Binding)
    """Whether cluster and fleets belong together."""
    clock_skew_seconds: int = 0
    """How far our clock is ahead of EC2's and the API server's; negative when it is behind."""
    raises: tuple[SavedRaise, ...] = ()
    """The same of earlier raises of targets; this plan's raises are not in it yet."""
    interrupted_pools: tuple[InterruptedPool, ...] = ()
    """The same of the places where EC2 took our spot instances back in the last half hour."""
    protected_instances: tuple[ProtectedInstance, ...] = ()
    """The same of instances that EC2 refused to end, as they are protected from termination."""
    stand_ins: tuple[StandIns, ...] = ()
    """On-demand nodes that were bought because a spot fleet was unavailable."""
    headroom: tuple[HeadroomPlan, ...] = ()
    """The result for each item of the config."""
    new_nodes: tuple[NewNodes, ...] = ()
    """What pods and headroom add to the targets, by fleet."""
    ran_before: tuple[int, int] = (0, 0)
    """Number of nodes before the plan, and their price per hour in billionths of a dollar."""
    raise_nodes_left: int | None = None
    """Nodes that later plans of this hour may still ask for; None without a limit."""
    quarantined: int = 0
    """Kinds of pods for which nothing is bought any more (`no-progress`)."""
    fleet_of_node: Mapping[NodeName, FleetKey] = field(default_factory=dict)
    """The fleet that brought each node; nodes that no fleet of the config brought are left out."""
    leaving: frozenset[NodeName] = frozenset()
    """Nodes whose instance is gone, or is ended by EC2."""
    orphans: int = 0
    """Instances with our tags whose fleet is gone."""
    orphan_nodes: frozenset[NodeName] = frozenset()
    """Those of them that are nodes."""
    interrupted: tuple[InterruptedNode, ...] = ()
    """Nodes that EC2 is taking back now, by name."""
    outdated: Mapping[str, int] = field(default_factory=dict)
    """How many nodes are due for replacement, by the reason that disruption budgets name."""
    notices: tuple[NoticeOutcome, ...] = ()
    """What the snapshot shows of the interruption queue's notices."""
    last_descheduled_at: datetime | None = None
    """When the descheduler last evicted pods, this plan's evictions included."""
    nodes_by_kind: tuple[NodesByKind, ...] = ()
    """What the spot rescheduler considers; empty while it is off."""
    drifted: tuple[DriftedNodes, ...] = ()
    """Nodes that their fleets would launch differently now, by reason; no entry has 0 nodes."""
    resumes: tuple[ResumedUpdate, ...] = ()
    """What came of the updates that a person asked to resume; only in the plan that sees it."""
    demanding: frozenset[str] = frozenset()
    """Namespaces whose pending pods take long to plan, while others use the cluster too."""
    offered_resources: frozenset[str] = frozenset()
    """Resources that pods request and that a node has, or a new one would have. Pods may request
    any other name."""

    def refusals(self) -> list[tuple[tuple[Reason, ...], int]]:
        """Return the reasons for which pods are unplaceable, and how many pods have each.

        Pods of one shape share their reasons, one per fleet: what is counted here once need not be
        counted pod by pod. Equal reasons that are not shared come more than once.
        """
        found: dict[int, tuple[tuple[Reason, ...], int]] = {}
        for unplaceable in self.unplaceable:
            known = found.get(id(unplaceable.reasons), (unplaceable.reasons, 0))
            found[id(unplaceable.reasons)] = known[0], known[1] + 1
        return list(found.values())

    @property
    def pods_without_sector(self) -> int:
        """Return how many pods are pending and ignored because they select no sector."""
        return sum(1 for each in self.ignored if each.code == "no-sector" and each.pod)

    @property
    def updates(self) -> tuple[FleetUpdate, ...]:
        """Return the rolling updates that are not finished."""
        return tuple(fleet.update for fleet in self.fleets if fleet.update is not None)
