"""What a planning cycle decided: actions in order, promises, refusals, cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, get_args

from reconciler.model.actions import AnyAction
from reconciler.model.binding import Binding, StuckEnd
from reconciler.model.fleet import PriceSource
from reconciler.model.ids import NodeName, PodKey, Region
from reconciler.model.notices import NoticeOutcome
from reconciler.model.saved_state import (
    InterruptedPool,
    LostFleet,
    SavedDemandState,
    SavedFleetState,
    SavedRaise,
)
from reconciler.model.snapshot import Ignored


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


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Reason:
    """Why one fleet cannot take a pod."""

    fleet: str
    region: Region
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaceable:
    """A pod of ours that nothing can take, with a reason per fleet."""

    pod: PodKey
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Held:
    """A node that is kept although a policy would have begun to remove it."""

    node: NodeName
    """Empty where the instance never joined."""
    code: str
    instance: str = ""
    """Set where there is no node."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Kept:
    """Why a node is not being removed; shown on request only."""

    node: NodeName
    code: str
    detail: str
    until: datetime | None = field(default=None, compare=False)
    """When this no longer keeps it, whatever else happens; None when time alone does not end it."""


UpdateState = Literal["waiting", "canary", "rolling", "paused", "closed", "halted"]
"""`waiting`: the next batch may begin. `canary`: the first new node comes or is watched. `rolling`:
a batch is replaced. `paused`: between two batches. `closed`: outside of all maintenance windows.
`halted`: the new version does not work."""
UPDATE_STATES: Final[tuple[UpdateState, ...]] = get_args(UpdateState)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetUpdate:
    """The rolling update of one fleet: nodes of it are drifted, and it is switched on."""

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
class FleetPlan:
    """One fleet's numbers before and after."""

    fleet: str
    region: Region
    current: int
    joined: int
    launching: int
    target: int
    min: int
    max: int | None
    state: str
    """EC2's word; `missing` when EC2 does not have the fleet, `unknown` when it does not answer."""
    unavailable: str = ""
    """Why it cannot be asked for more now; empty when it can."""
    awaited: int = 0
    """Instances that EC2 is asked for, by this plan or before, and has not launched; none while
    the fleet is unavailable."""
    removal: str = ""
    """What its approved removal or replacement waits for; empty when it is not to go, or has no
    node left."""
    update: FleetUpdate | None = None
    """Its rolling update; None when it has none, or it is finished."""
    node_usd_per_hour: float = 0.0
    """What one new node of it costs; a usual price of its CPUs and memory where none is known."""
    rebalances_zones: bool = False
    """Whether its Auto Scaling group may end nodes with pods to even out its zones."""


DriftReason = Literal["launch-template-version", "instance-type", "subnet"]
"""What of a node its fleet would launch otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftedNodes:
    """Nodes of one fleet that it would no longer launch as they are, for one reason."""

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
    """Pods on them, those of DaemonSets, mirror pods and finished ones left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNodes:
    """Nodes that a plan asks one fleet for because of pods and headroom."""

    fleet: str
    region: Region
    nodes: int
    nano_usd_per_hour: int
    """What they cost together, in billionths of a dollar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackNodes:
    """On-demand nodes of one fleet that stand in for nodes of a spot fleet."""

    fleet: str
    region: Region
    instead_of: str
    """The spot fleet."""
    nodes: int
    extra_hourly_usd: float
    """What they cost per hour beyond as many nodes of the spot fleet; 0 without known prices."""
    going_back: int = 0
    """How many of them are in the batch that is being replaced."""
    waits: str = ""
    """What the next batch waits for, in words; empty when one may begin, or `spot_return` is off.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomPlan:
    """What became of one item of headroom."""

    sector: str
    asked: str
    """What the config asks for, in words."""
    pieces: int
    """How many pieces of room that is."""
    missing: int
    """Those for which there is neither room nor a node on its way."""
    because: str
    """Why some are missing; empty when none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Hourly cost of all targets, and the proof of how good the plan is."""

    hourly_usd_before: float
    hourly_usd_after: float
    hourly_usd_lower_bound: float
    gap: float
    """(after - lower bound) / after; 0 when nothing costs."""
    unpriced: tuple[str, ...] = ()
    """Fleets without a known price, counted at a usual price of their CPUs and memory."""
    prices: PriceSource | None = None
    """None: prices are from no catalogue."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class InterruptedNode:
    """A node that EC2 takes back."""

    node: NodeName
    empty: bool
    """Whether no pod that counts is on it any more."""
    seconds: float
    """Since its drain began; 0 in the plan that begins it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The outcome of one planning cycle; a pure function of snapshot, settings and clock."""

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
    fleet_states: tuple[SavedFleetState, ...] = ()
    """What the loop must remember about fleets after this cycle."""
    demands: tuple[SavedDemandState, ...] = ()
    """The same about demand that nodes were asked for."""
    lost_fleets: tuple[LostFleet, ...] = ()
    """The same about fleets that instances name and EC2 does not."""
    stuck_ends: tuple[StuckEnd, ...] = ()
    """The same about instances that never joined and were ended in the last hour."""
    binding: Binding = field(default_factory=Binding)
    """Whether cluster and fleets belong together."""
    clock_skew_seconds: int = 0
    """How far our clock is ahead of EC2's and the API server's; negative when it is behind."""
    raises: tuple[SavedRaise, ...] = ()
    """The same about how far targets were raised before; what this plan raises comes on top."""
    interrupted_pools: tuple[InterruptedPool, ...] = ()
    """The same about where EC2 took spot instances of ours back in the last half hour."""
    fallbacks: tuple[FallbackNodes, ...] = ()
    """On-demand nodes that were bought because a spot fleet was unavailable."""
    headroom: tuple[HeadroomPlan, ...] = ()
    """What became of each item of the config."""
    new_nodes: tuple[NewNodes, ...] = ()
    """What pods and headroom add to the targets, by fleet."""
    ran_before: tuple[int, int] = (0, 0)
    """Nodes before the plan, and what they cost per hour in billionths of a dollar."""
    raise_nodes_left: int | None = None
    """Nodes that later plans of this hour may still ask for; None without a limit."""
    quarantined: int = 0
    """Kinds of pods for which nothing is bought any more (`no-progress`)."""
    orphans: int = 0
    """Instances with our tags whose fleet is gone."""
    interrupted: tuple[InterruptedNode, ...] = ()
    """Nodes that EC2 takes back now, by name."""
    outdated: Mapping[str, int] = field(default_factory=dict)
    """How many nodes are to be replaced in time, by the reason that disruption budgets name."""
    notices: tuple[NoticeOutcome, ...] = ()
    """What the snapshot shows of the notices that the interruption queue told."""
    last_descheduled_at: datetime | None = None
    """When the descheduler last evicted pods, this plan's evictions included."""
    nodes_by_kind: tuple[NodesByKind, ...] = ()
    """What the spot rescheduler looks at; nothing while it is off."""
    drifted: tuple[DriftedNodes, ...] = ()
    """Nodes that their fleets would launch otherwise, by reason; only those that there are."""
    demanding: frozenset[str] = frozenset()
    """Namespaces whose pending pods take long to plan, while others use the cluster."""

    @property
    def updates(self) -> tuple[FleetUpdate, ...]:
        """Rolling updates that are not finished."""
        return tuple(fleet.update for fleet in self.fleets if fleet.update is not None)
