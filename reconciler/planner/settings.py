"""The planner's settings: the resolved sector config.

`config/` makes these from a sector config and the instance catalogue; every default, size and price
is settled there, so that planning looks nothing up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from decimal import Decimal
from typing import Final, Literal, get_args

from reconciler.model.cluster import Resources, Taint
from reconciler.model.fleet import (
    InstanceOption,
    InstanceType,
    Lifecycle,
    PriceSource,
    Provider,
    UsdPerHour,
)
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.ids import FleetKey, Region
from reconciler.planner.descheduler_settings import DeschedulerSettings
from reconciler.planner.named_priorities import NamedPriorities
from reconciler.planner.reserve import Reserve

Expander = Literal["cost", "least-waste", "most-pods", "random", "priority"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GracePeriod:
    """How long a node must have been empty, at some hours of some days; the first match counts.

    An overnight range (`starts` > `ends`) holds on each of its days from 00:00 to `ends` and from
    `starts` to 24:00. `starts` equal to `ends` is the whole day.
    """

    starts: time
    ends: time
    weekdays: frozenset[int]
    """The days of the moment in question, 1 to 7 from Monday."""
    seconds: float


DisruptionReason = Literal[
    "empty",
    "underutilized",
    "consolidation",
    "drifted",
    "expired",
    "rebalance",
    "spot-reschedule",
    "deschedule",
]
"""The reasons for voluntary disruptions, which a disruption budget may limit."""
DISRUPTION_REASONS: Final[frozenset[DisruptionReason]] = frozenset(get_args(DisruptionReason))
EVERY_DAY: Final = frozenset(range(1, 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionBudget:
    """How many nodes of its scope may be disrupted at the same time.

    It holds always, within a window (`starts`, `ends`, and the `weekdays` on which it opens), or
    for `duration_seconds` after each moment of `schedule`.
    """

    nodes: int
    """A number of nodes, or a percentage of those that the scope has."""
    percent: bool = False
    reasons: frozenset[DisruptionReason] = DISRUPTION_REASONS
    starts: time = time(0)
    ends: time = time(0)
    """Equal to `starts`: the whole day."""
    weekdays: frozenset[int] = EVERY_DAY
    schedule: str | None = None
    """A cron expression in the config's time zone."""
    duration_seconds: float = 0.0

    def allowed(self, nodes: int) -> int:
        """Return how many of `nodes` may be disrupted; a percentage is rounded up."""
        return -(-nodes * self.nodes // 100) if self.percent else self.nodes

    def __str__(self) -> str:
        return f"nodes: {self.nodes}{'%' if self.percent else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceWindow:
    """When batches of a rolling update may begin, in the config's time zone."""

    starts: time = time(0)
    ends: time = time(0)
    """Equal to `starts`: the whole day. Earlier: on the next day."""
    weekdays: frozenset[int] = EVERY_DAY
    """The days on which it opens, 1 to 7 from Monday."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingUpdate:
    """How drifted nodes are replaced (docs/rolling-updates.md)."""

    min_in_service: int | None = None
    """Ready nodes that a fleet keeps meanwhile; None if each node waits for a new one."""
    batch_max: int = 1
    pause_seconds: float = 120.0
    """The time after the last new node is Ready, before the next batch begins."""
    canary_seconds: float = 600.0
    """How long the first new node of a version is watched before others follow."""
    windows: tuple[MaintenanceWindow, ...] = ()
    """When a batch may begin; empty for any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLabel:
    """A label that selects nodes: a key, with one value or any."""

    key: str
    value: str | None = None
    """None for any value."""

    def matches(self, labels: Labels) -> bool:
        """Return whether the labels have it."""
        found = labels.get(self.key)
        return found is not None and self.value in {None, found}

    def __str__(self) -> str:
        return self.key if self.value is None else f"{self.key}={self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRescheduler:
    """How pods are moved off on-demand nodes (docs/spot-rescheduler.md)."""

    on_demand: NodeLabel
    spot: NodeLabel
    """A node with both labels is a spot node."""
    node_drain_delay_seconds: float = 600.0
    """The time from the last eviction of one drain until the next drain begins."""
    pod_eviction_timeout_seconds: float = 120.0
    graceful_termination_max_seconds: float = 120.0
    move_bare_pods: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotReturn:
    """When on-demand nodes that stand in for spot nodes are replaced by spot nodes."""

    stable_seconds: float = 1800.0
    """How long the spot fleet must have had no error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlastRadius:
    """How many pods of one controller may be moved within a time."""

    pods: int
    """A number of pods, or a percentage of those that the controller has."""
    percent: bool = False
    per_seconds: float = 600.0

    def allowed(self, pods: int) -> int:
        """Return how many of `pods` may be moved; a percentage is rounded up."""
        return -(-pods * self.pods // 100) if self.percent else self.pods


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleInSettings:
    """When a node is no longer needed (docs/scale-in.md)."""

    idle_threshold_seconds: float = 600
    idle_threshold_explicit: bool = False
    """Whether the config sets it: then the longer of it and a grace period applies."""
    type_idle_threshold_seconds: float = 0
    type_spares: int = 0
    utilization_threshold: float = 0.5
    unneeded_seconds: float = 600
    settle_seconds: float = 300
    """No pod is moved off a node to which one was bound less than this long ago."""
    consolidate_after_seconds: float = 300
    """As `settle_seconds`, for moves that only save money; never less than that."""
    move_cost_usd: Decimal = Decimal("0.0005")
    """The cost of moving one pod; a move must save more than that within an hour."""
    empty_at_once_max: int = 10
    non_empty_at_once_max: int = 1
    pod_eviction_timeout_seconds: float = 120
    graceful_termination_max_seconds: float = 120
    move_bare_pods: bool = False
    move_local_storage: bool = False
    move_system_pods: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings:
    """One fleet of the sector config."""

    name: str
    """`<sector>-<size>` or `<sector>-<size>-<zone>`."""
    sector: str
    kind: str
    size: str
    provider: Provider = "ec2-fleet"
    auto_scaling_group: str | None = None
    managed: bool = True
    """Whether Terraform makes it from this config, which then has all its labels and taints."""
    spot: bool = True
    spot_fallback: bool = False
    """Whether its demand may be served by on-demand nodes while spot is unavailable."""
    zone: str | None = None
    """The one zone in which it launches; None if there may be several."""
    zones: tuple[str, ...] = ()
    """The zones in which it may launch, as far as the config says (its subnets)."""
    regions: tuple[Region, ...]
    """In order of preference."""
    min_capacity: int = 0
    max_capacity: int | None = None
    priority: int = 0
    labels: Labels = NO_LABELS
    """Every label that a new node will carry, ours included."""
    taints: tuple[Taint, ...] = ()
    """The taints that stay on a new node; start-up taints are removed before pods come to it."""
    options: tuple[InstanceOption, ...]
    """What EC2 may choose from; at least one."""
    allocatable: Resources | None = None
    """Exact resources of a new node, if the config states them: nothing is reserved on top."""
    usd_per_hour: UsdPerHour | None = None
    """The price of its cheapest option; None if no price is known."""
    ephemeral_storage_bytes: int = 0
    over_subscription: float = 0.0
    grace_periods: tuple[GracePeriod, ...] = ()
    departing: bool = False
    """Whether `allow_destroy` lists it: then it is emptied and takes no more pods."""
    scale_in: ScaleInSettings = field(default_factory=ScaleInSettings)
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    bounce_deployment_pods: bool = False
    expire_after_seconds: float | None = None
    terminate_after_seconds: float | None = None
    """How long pods may keep an expired node; None for no limit."""

    @property
    def lifecycle(self) -> Lifecycle:
        """Return the capacity type that it buys."""
        return "spot" if self.spot else "on-demand"

    def minimum_region(self, home: Region) -> Region:
        """Return the region of its min_capacity: the home region, or else the first of its own."""
        return home if home in self.regions else self.regions[0]

    @property
    def is_made_elsewhere(self) -> bool:
        """Return whether it is a group that Terraform does not make from this config.

        What the config does not say about its new nodes comes from its nodes, its tags and EKS.
        """
        return self.provider == "asg" and not self.managed

    def fleet_keys(self) -> tuple[FleetKey, ...]:
        """Return the fleet in each of its regions, in order of preference."""
        return tuple(FleetKey(name=self.name, region=region) for region in self.regions)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectorSettings:
    """One sector: the pods that name it and the fleets that serve it."""

    name: str
    kind: str
    fleets: tuple[FleetSettings, ...]
    expander: Expander = "cost"
    usd_per_hour_max: Decimal | None = None
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    scale_in: ScaleInSettings = field(default_factory=ScaleInSettings)
    """The sector's settings for fleets, for one that the config no longer names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The settings of groups that the config does not name: those at its top."""

    types: Mapping[str, InstanceType]
    """The catalogue of instance types, by name."""
    expander: Expander = "cost"
    over_subscription: float = 0.0
    grace_periods: tuple[GracePeriod, ...] = ()
    scale_in: ScaleInSettings = field(default_factory=ScaleInSettings)
    priorities: NamedPriorities = ()
    """For the expander `priority`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """Room to keep free in a sector: CPU and memory, or nodes, or a percentage."""

    sector: str
    cpu_milli: int = 0
    memory_bytes: int = 0
    nodes: int = 0
    percent: float = 0.0
    """Of what the sector's pods request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckEndSettings:
    """How many instances that never became nodes may be ended."""

    per_cycle: int = 5
    per_hour: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseLimits:
    """How far one plan, and all plans of an hour, may raise targets for pods and headroom.

    None for the limit that depends on what runs (see `planner.raise_limits`).
    """

    nodes_per_cycle: int | None = None
    nodes_per_hour: int | None = None
    hourly_usd_per_cycle: Decimal | None = None
    hourly_usd_per_hour: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceSettings:
    """Which fleets are similar, so that new nodes are distributed over them."""

    ignored_labels: frozenset[str] = frozenset()
    """Labels that may differ, in addition to those that name a place or a group."""
    labels: frozenset[str] = frozenset()
    """If not empty, only these labels decide, and resources do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerSettings:
    """Everything that the sector config decides about planning."""

    cluster: str
    regions: tuple[Region, ...]
    """In order of preference; the first is home."""
    sectors: tuple[SectorSettings, ...]
    discovery: Discovery | None = None
    """Whether every group that is found is a fleet, for a config without sectors."""
    default_sector: str | None = None
    pod_namespace: str | None = None
    """Only pods of this namespace are demand; all occupy their nodes."""
    scale_in: ScaleInSettings = field(default_factory=ScaleInSettings)
    """The settings at the config's top, for fleets of a sector that it no longer names."""
    reserve: Reserve = field(default_factory=Reserve)
    prices: PriceSource | None = None
    """Where the prices of the fleets come from; shown with amounts of money."""
    balance: BalanceSettings | None = None
    """None if nothing chooses among fleets of equal cost, so that one may get all new nodes."""
    usd_per_hour_max: Decimal | None = None
    raise_limits: RaiseLimits | None = None
    """None for targets that rise as far as demand asks; the config always sets limits."""
    instance_init_seconds: float = 900
    startup_taints: frozenset[str] = frozenset()
    """Keys of taints that are removed from a new node before pods come to it, in addition to the
    known ones (`planner.nodes.starting`)."""
    unready_seconds: float = 600
    drains_for_rebalance: bool = True
    """Whether a rebalance recommendation empties its node; else it is ignored."""
    rolling_update: RollingUpdate | None = None
    """None if drifted nodes are not replaced."""
    spot_rescheduler: SpotRescheduler | None = None
    """None if no pod is moved because a spot node has room."""
    spot_return: SpotReturn | None = None
    """None if nodes that stand in for spot nodes stay as long as they are used."""
    stuck_ends: StuckEndSettings = field(default_factory=StuckEndSettings)
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    """Of the whole cluster; those of sectors and fleets apply as well."""
    blast_radius: BlastRadius | None = None
    """None if only their own budgets limit how many pods of a controller are moved."""
    headroom: tuple[Headroom, ...] = ()
    """Room that is kept free for future pods."""
    timezone: str = "UTC"
    consolidation: bool = False
    descheduler: DeschedulerSettings | None = None
    """None if no pod is descheduled."""
    allow_destroy: frozenset[str] = frozenset()
    """Fleets that may be emptied for good."""
    search_budget_seconds: float = 0.2
    """How long the search for cheaper capacity may take after the fast packings, counted in
    steps of known cost and not by a clock: a plan depends on its inputs alone."""

    @property
    def home_region(self) -> Region:
        """Return the region of min_capacity for fleets that are in it (`minimum_region`)."""
        return self.regions[0]

    @property
    def observed_regions(self) -> tuple[Region, ...]:
        """Return every region that a fleet may be in, home first: fleets may name further ones."""
        own = (region for fleet in self.fleets() for region in fleet.regions)
        return tuple(dict.fromkeys((*self.regions, *own)))

    def fleets(self) -> tuple[FleetSettings, ...]:
        """Return every fleet of every sector, in the order of the config."""
        return tuple(fleet for sector in self.sectors for fleet in sector.fleets)
