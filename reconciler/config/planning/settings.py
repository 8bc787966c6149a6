"""Makes the planner's settings from a sector config and the catalogue."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from reconciler.config.catalogue import Catalogue
from reconciler.config.fleets import SectorEntry
from reconciler.config.planning.descheduler import descheduler_settings
from reconciler.config.planning.fleet_choice import (
    balance_settings,
    fleet_priority,
    named_priorities,
)
from reconciler.config.planning.instance_options import instance_option
from reconciler.config.planning.scale_in import grace_period, scale_in_settings
from reconciler.config.planning.spot_rescheduler import spot_rescheduler
from reconciler.config.resolve import ResolvedFleet, resolve_fleets
from reconciler.config.schema import SectorConfig
from reconciler.config.sections import (
    BlastRadiusLimit,
    DisruptionBudget,
    RaiseLimits,
)
from reconciler.model.cluster import Resources, Taint
from reconciler.model.errors import UsageError
from reconciler.model.fleet import InstanceOption, InstanceType, PriceSource, UsdPerHour
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import Region
from reconciler.planner import disruption_settings as disruption
from reconciler.planner import settings as planner
from reconciler.planner.nodes.starting import lasting
from reconciler.planner.system_reserve import SystemReserve

DEFAULT_BUDGETS: Final = (
    disruption.DisruptionBudget(
        nodes=10, percent=True, reasons=disruption.DISRUPTION_REASONS - {"empty"}
    ),
)
"""Without a stated budget a tenth of all nodes may be disrupted at a time. The end of an empty
node disturbs no pod: `max_empty_at_once` limits those."""
SpotPrices = Mapping[tuple[Region, str], UsdPerHour]
"""By region and instance type."""
NO_SPOT_PRICES: Final[SpotPrices] = FrozenMap()
_DEFAULT_REGION: Final = "us-east-1"
_GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class _Market:
    """Where prices are looked up."""

    catalogue: Mapping[str, InstanceType]
    home_region: str
    spot_prices: SpotPrices


def planner_settings(
    config: SectorConfig,
    catalogue: Mapping[str, InstanceType],
    *,
    home_region: str | None = None,
    spot_prices: SpotPrices = NO_SPOT_PRICES,
) -> planner.PlannerSettings:
    """Return everything that a sector config decides about planning.

    Args:
        config: A valid config.
        catalogue: Instance types by name.
        home_region: For a config without `regions`; None if nothing shows it: us-east-1.
        spot_prices: EC2's own, by region and type; they override the catalogue's estimates.

    Raises:
        UsageError: The config names no cluster.
    """
    if not config.cluster:
        raise UsageError("cluster", "the config names no cluster", "give --cluster-name")
    fleets = resolve_fleets(config)
    home = home_region or _DEFAULT_REGION
    market = _Market(catalogue, home, spot_prices)
    return planner.PlannerSettings(
        cluster=config.cluster,
        regions=_regions(config.regions, home),
        sectors=tuple(
            _sector(config, name, sector, market, fleets) for name, sector in config.sectors.items()
        ),
        discovery=None if config.sectors else _discovery(config, catalogue),
        default_sector=config.default_sector or None,
        pod_namespace=config.pod_namespace,
        scale_in=scale_in_settings(config.scale_in),
        reserve=_reserve(config),
        prices=_price_source(catalogue),
        balance=balance_settings(config),
        usd_per_hour_max=config.max_hourly_usd,
        raise_limits=_raise_limits(config.raise_limits),
        instance_init_seconds=config.instance_init_time_seconds,
        startup_taints=frozenset(config.startup_taints),
        unready_seconds=config.unready_time_seconds,
        drains_for_rebalance=config.interruption.rebalance == "drain",
        rolling_update=_rolling_update(config),
        spot_rescheduler=spot_rescheduler(config.spot_rescheduler),
        spot_return=_spot_return(config),
        stuck_ends=_stuck_ends(config),
        headroom=_headroom(config),
        timezone=config.timezone,
        disruption_budgets=_budgets(config.disruption_budgets) or DEFAULT_BUDGETS,
        blast_radius=_blast_radius(config.blast_radius),
        consolidation=config.consolidation,
        descheduler=descheduler_settings(config.descheduler),
        allow_destroy=frozenset(config.allow_destroy),
    )


def _spot_return(config: SectorConfig) -> disruption.SpotReturn | None:
    """Return when on-demand stand-ins are replaced by spot nodes again; None if that is off."""
    if not config.spot_return.enabled:
        return None
    return disruption.SpotReturn(stable_seconds=config.spot_return.stable_for_seconds)


def _headroom(config: SectorConfig) -> tuple[planner.Headroom, ...]:
    """Return the items of headroom; what an item does not state is 0."""
    return tuple(
        planner.Headroom(
            sector=item.sector or "",
            cpu_milli=item.cpu_milli or 0,
            memory_bytes=item.memory_bytes or 0,
            nodes=item.nodes or 0,
            percent=float(item.percent or 0),
        )
        for item in config.headroom
    )


def _reserve(config: SectorConfig) -> SystemReserve:
    """Return what of each new node is reserved; of groups' nodes only what the config states."""
    amounts = {"cpu": config.reserved_cpu_milli, "memory": config.reserved_memory_bytes}
    keys = {"cpu": "reserved_cpu_milli", "memory": "reserved_memory_bytes"}
    left_open = frozenset(name for name, key in keys.items() if key not in config.model_fields_set)
    return SystemReserve(amounts=FrozenMap(amounts), groups_as_eks=left_open)


def _stuck_ends(config: SectorConfig) -> planner.StuckEndSettings:
    """Return how many instances that never became nodes are ended at once, and in an hour."""
    stated = config.stuck_ends
    return planner.StuckEndSettings(per_cycle=stated.per_cycle, per_hour=stated.per_hour)


def _price_source(catalogue: Mapping[str, InstanceType]) -> PriceSource | None:
    """Return region and date of a catalogue's prices."""
    return catalogue.prices if isinstance(catalogue, Catalogue) else None


def _rolling_update(config: SectorConfig) -> disruption.RollingUpdate | None:
    """Return how drifted nodes are replaced; None while that is switched off."""
    stated = config.rolling_update
    if not stated.enabled:
        return None
    return disruption.RollingUpdate(
        min_in_service=stated.min_in_service,
        batch_max=stated.max_batch,
        pause_seconds=stated.pause_seconds,
        canary_seconds=stated.canary_time_seconds,
        windows=tuple(
            disruption.MaintenanceWindow(
                starts=window.starts,
                ends=window.ends,
                weekdays=frozenset(window.days) or disruption.EVERY_DAY,
            )
            for window in config.maintenance_windows
        ),
    )


def _blast_radius(stated: BlastRadiusLimit | None) -> disruption.BlastRadius | None:
    """Return the limit per controller in the planner's form; None without one."""
    if stated is None:
        return None
    return disruption.BlastRadius(
        pods=int(stated.pods_per_controller.removesuffix("%")),
        percent=stated.pods_per_controller.endswith("%"),
        per_seconds=stated.per_seconds,
    )


def _budgets(stated: Iterable[DisruptionBudget]) -> tuple[disruption.DisruptionBudget, ...]:
    """Return disruption budgets in the planner's form."""
    return tuple(
        disruption.DisruptionBudget(
            nodes=int(budget.nodes.removesuffix("%")),
            percent=budget.nodes.endswith("%"),
            reasons=frozenset(budget.reasons) or disruption.DISRUPTION_REASONS,
            starts=budget.starts,
            ends=budget.ends,
            weekdays=frozenset(budget.days) or disruption.EVERY_DAY,
            schedule=budget.schedule,
            duration_seconds=budget.duration_seconds or 0.0,
        )
        for budget in stated
    )


def _raise_limits(limits: RaiseLimits) -> planner.RaiseLimits:
    """Return the limits that the config states; the planner has defaults for the others."""
    return planner.RaiseLimits(
        nodes_per_cycle=limits.nodes_per_cycle,
        nodes_per_hour=limits.nodes_per_hour,
        hourly_usd_per_cycle=limits.hourly_usd_per_cycle,
        hourly_usd_per_hour=limits.hourly_usd_per_hour,
    )


def _discovery(config: SectorConfig, catalogue: Mapping[str, InstanceType]) -> planner.Discovery:
    """Return what the config's top level says of groups that it does not name."""
    return planner.Discovery(
        types=catalogue,
        expander=config.expander,
        over_subscription=config.default_over_subscription,
        grace_periods=tuple(grace_period(period) for period in config.inactive_grace_periods),
        scale_in=scale_in_settings(config.scale_in),
        priorities=named_priorities(config),
    )


def _regions(stated: tuple[str, ...], home_region: str) -> tuple[Region, ...]:
    """Return Regions in order of preference, never empty."""
    return tuple(Region(region) for region in stated or (home_region,))


def _sector(
    config: SectorConfig,
    name: str,
    sector: SectorEntry,
    market: _Market,
    fleets: tuple[ResolvedFleet, ...],
) -> planner.SectorSettings:
    """Return one sector with its fleets."""
    return planner.SectorSettings(
        name=name,
        kind=sector.kind,
        fleets=tuple(
            _fleet(fleet, market, config.startup_taints)
            for fleet in fleets
            if fleet.sector_name == name
        ),
        expander=sector.expander or config.expander,
        usd_per_hour_max=sector.max_hourly_usd,
        disruption_budgets=_budgets(sector.disruption_budgets),
        scale_in=scale_in_settings(config.scale_in.overridden_by(sector.scale_in)),
    )


def _fleet(
    fleet: ResolvedFleet, market: _Market, startup_taints: Container[str]
) -> planner.FleetSettings:
    """Return one fleet with everything that it inherits."""
    entry = fleet.entry
    regions = _regions(fleet.planned_regions, market.home_region)
    options = tuple(
        instance_option(fleet, name, market.catalogue, market.spot_prices.get((regions[0], name)))
        for name in fleet.instance_types
    )
    stated = (Taint(key=t.key, value=t.value, effect=t.effect) for t in fleet.taints)
    return planner.FleetSettings(
        name=fleet.name,
        sector=fleet.sector_name,
        kind=fleet.sector.kind,
        size=entry.size,
        provider=entry.provider,
        auto_scaling_group=entry.auto_scaling_group,
        managed=entry.managed,
        spot=entry.spot,
        spot_fallback=entry.spot_fallback == "on-demand",
        zone=entry.zone,
        zones=fleet.zones,
        regions=regions,
        min_capacity=entry.min_capacity,
        max_capacity=entry.max_capacity,
        priority=fleet_priority(fleet),
        labels=FrozenMap(_labels(fleet, options)),
        taints=lasting(stated, startup_taints),
        options=options,
        allocatable=_allocatable(fleet, options),
        usd_per_hour=_cheapest(fleet, options, market, regions[0]),
        ephemeral_storage_bytes=_ephemeral_storage(fleet),
        over_subscription=fleet.over_subscription,
        grace_periods=tuple(grace_period(period) for period in fleet.grace_periods),
        scale_in=scale_in_settings(fleet.scale_in),
        disruption_budgets=_budgets(entry.disruption_budgets),
        bounce_deployment_pods=entry.bounce_deployment_pods,
        expire_after_seconds=entry.expire_after_seconds,
        terminate_after_seconds=entry.terminate_after_seconds,
    )


def _cheapest(
    fleet: ResolvedFleet, options: tuple[InstanceOption, ...], market: _Market, region: Region
) -> Decimal | None:
    """Return the price of the cheapest option.

    Where EC2's history has prices for some options, the others are not available there, so the
    catalogue's estimates for them do not count.
    """
    known = [o for o in options if o.usd_per_hour is not None]
    if fleet.entry.spot and fleet.entry.price_usd_per_hour is None:
        traded = [o for o in known if (region, o.instance_type) in market.spot_prices]
        known = traded or known
    return min((o.usd_per_hour for o in known if o.usd_per_hour is not None), default=None)


def _allocatable(fleet: ResolvedFleet, options: tuple[InstanceOption, ...]) -> Resources | None:
    """Return the config's resources of a new node: the fleet's, else its size's.

    Every pod takes a slot: where none are stated, a node has as many as its types.
    """
    stated = fleet.entry.allocatable
    if stated is None:
        stated = fleet.own_size.allocatable if fleet.own_size else None
    if stated is None:
        return None
    return FrozenMap({"pods": min(o.resources["pods"] for o in options), **stated})


def _labels(fleet: ResolvedFleet, options: tuple[InstanceOption, ...]) -> dict[str, str]:
    """Return our labels and those that the kubelet and the cloud provider certainly add."""
    labels = {**fleet.labels, "kubernetes.io/os": "linux"}
    arches = {option.arch for option in options}
    if len(arches) == 1:
        labels["kubernetes.io/arch"] = arches.pop()
    if len(options) == 1:
        labels["node.kubernetes.io/instance-type"] = options[0].instance_type
    if fleet.entry.zone is not None:
        labels["topology.kubernetes.io/zone"] = fleet.entry.zone
        labels["topology.ebs.csi.aws.com/zone"] = fleet.entry.zone
    return labels


def _ephemeral_storage(fleet: ResolvedFleet) -> int:
    """Return what the size states, else the node's volume."""
    stated = fleet.own_size.ephemeral_storage_bytes if fleet.own_size else None
    return fleet.ebs_size_gib * _GIB if stated is None else stated
