"""The planner's settings: the resolved sector config.

`config/` makes these from a sector config and the instance catalogue; every default, size and price
is settled there, so that planning looks nothing up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Literal

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
from reconciler.planner.disruption_settings import (
    BlastRadius,
    DisruptionBudget,
    GracePeriod,
    RollingUpdate,
    ScaleInSettings,
    SpotRescheduler,
    SpotReturn,
)
from reconciler.planner.named_priorities import NamedPriorities
from reconciler.planner.system_reserve import SystemReserve

Expander = Literal["cost", "least-waste", "most-pods", "random", "priority"]


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
        return _keys_of(self.name, self.regions)


@lru_cache(maxsize=8_192)
def _keys_of(name: str, regions: tuple[Region, ...]) -> tuple[FleetKey, ...]:
    return tuple(FleetKey(name=name, region=region) for region in regions)


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
    reserve: SystemReserve = field(default_factory=SystemReserve)
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
