"""The world that programs play in: fleets of two sectors, one that the config does not name."""

from dataclasses import replace
from typing import Any

from reconciler.adapters.memory import Delays, FleetShape, MemoryWorld
from reconciler.model.cluster import Node, Resources
from reconciler.model.ids import FleetId, NodeName, Region
from reconciler.planner.disruption_settings import (
    NodeLabel,
    RollingUpdate,
    ScaleInSettings,
    SpotRescheduler,
    SpotReturn,
)
from reconciler.planner.settings import FleetSettings, Headroom, PlannerSettings
from reconciler.simulation.process import Process
from tests.builders import AWAY, HOME, amounts, labelled, make_fleet_settings, make_settings
from tests.life.programs import Config

INIT_SECONDS = 300
UNREADY_SECONDS = 240
SETTLE_SECONDS = 60
ROLLING_UPDATE = RollingUpdate(batch_max=2, pause_seconds=20, canary_seconds=60)
SPOT_RESCHEDULER = SpotRescheduler(
    on_demand=NodeLabel(key="lifecycle", value="OnDemand"),
    spot=NodeLabel(key="lifecycle", value="Ec2Spot"),
    node_drain_delay_seconds=20,
)
SMALL = amounts(cpu=4, memory="16Gi", pods=20)
LARGE = amounts(cpu=8, memory="32Gi", pods=20)
DELAYS = Delays(
    modify=1, launch=20, join=25, terminate=15, node_gone=20, pod_stop=2, pod_start=3,
    pods_given_up=60, interruption=120,
)  # fmt: skip


def fleet_settings(config: Config) -> tuple[FleetSettings, ...]:
    """Spot fleets of two sizes, an on-demand one behind them, and one for another sector."""
    scale_in = ScaleInSettings(
        idle_threshold_seconds=120,
        idle_threshold_explicit=True,
        unneeded_seconds=120,
        settle_seconds=SETTLE_SECONDS,
        consolidate_after_seconds=SETTLE_SECONDS,
        utilization_threshold=config.threshold,
        non_empty_at_once_max=config.non_empty_at_once,
        type_spares=config.spares,
        type_idle_threshold_seconds=600,
    )
    regions = (HOME, AWAY)[: config.regions]
    usual: dict[str, Any] = {"scale_in": scale_in, "over_subscription": config.over_subscription}
    fleets = (
        make_fleet_settings(
            pods=20, min_capacity=config.minimum, max_capacity=config.maximum, regions=regions,
            spot_fallback=True, **usual,
        ),
        make_fleet_settings(
            "large", cpu=8, memory="32Gi", pods=20, price="0.21", spot_fallback=True, **usual
        ),
        make_fleet_settings(
            "steady", pods=20, price="0.3", spot=False, taints=config.steady_taints, **usual
        ),
        make_fleet_settings("small", "batch", pods=20, max_capacity=3, **usual),
    )  # fmt: skip
    return tuple(
        replace(f, provider="asg", auto_scaling_group=f.name) if f.name in config.groups else f
        for f in fleets
    )


class Stage:
    """A world, the program on it, and what is distinguished about them.

    Args:
        config: The config that it starts with.
        fleets: The config's fleets; else those of `fleet_settings`.
    """

    def __init__(self, config: Config, fleets: tuple[FleetSettings, ...] = ()) -> None:
        delays = replace(DELAYS, fulfil=config.fulfil_seconds)
        self.world = MemoryWorld(cluster="c", delays=delays, scoring="least-allocated")
        fleets = fleets or fleet_settings(config)
        self.fleets: dict[tuple[str, Region], FleetId] = {}
        for fleet in fleets:
            for region in fleet.regions:
                target = fleet.min_capacity if region == HOME else 0
                self.fleets[fleet.name, region] = self.world.add_fleet(
                    shape_of(fleet, region), target
                )
        old = make_fleet_settings("old", pods=20)
        self.departed = self.world.add_fleet(shape_of(old, HOME), 1)
        self._foreign = 0
        self.add_foreign_node()
        self.world.advance(120)
        self.process = Process(
            self.world, settings_of(config, fleets), 0.0 if config.unhurried else 0.3
        )

    def add_foreign_node(self) -> None:
        """A node that somebody made by hand joins."""
        self._foreign += 1
        self.world.add_node(
            Node(name=NodeName(f"foreign-{self._foreign}"), uid=f"f{self._foreign}",
                 allocatable=amounts(cpu=1, memory="1Gi", pods=5))
        )  # fmt: skip

    def change_fleet(self, name: str, **changed: object) -> None:
        """The config changes: fields of one fleet."""
        self.process.settings = changed_fleet(self.process.settings, name, **changed)

    def allow_destroy(self, *names: str) -> None:
        """The config lists fleets that may go."""
        self.process.settings = replace(self.process.settings, allow_destroy=frozenset(names))


def shape_of(fleet: FleetSettings, region: Region) -> FleetShape:
    """The fleet as Terraform would have made it."""
    zone = f"{region}a"
    option = fleet.options[0]
    offered: Resources = option.resources
    return FleetShape(
        name=fleet.name,
        region=region,
        labels=labelled(**fleet.labels, **{"topology.kubernetes.io/region": region}),
        taints=fleet.taints,
        allocatable=offered,
        instance_type=option.instance_type,
        zone=zone,
        pools=((option.instance_type, zone), (option.instance_type, f"{region}b")),
        lifecycle=fleet.lifecycle,
        provider=fleet.provider,
        tags=labelled(sector=fleet.sector, size=fleet.size, Spot=str(fleet.spot).lower()),
    )


def settings_of(config: Config, fleets: tuple[FleetSettings, ...]) -> PlannerSettings:
    """The whole config."""
    return make_settings(
        *fleets,
        regions=(HOME, AWAY)[: config.regions],
        consolidation=config.consolidation,
        instance_init_seconds=INIT_SECONDS,
        unready_seconds=UNREADY_SECONDS,
        search_budget_seconds=0.0,
        spot_return=SpotReturn(stable_seconds=60) if config.spot_return else None,
        rolling_update=ROLLING_UPDATE if config.rolling_update else None,
        spot_rescheduler=SPOT_RESCHEDULER if config.spot_rescheduler else None,
        headroom=(Headroom(sector="primary", nodes=config.headroom),) if config.headroom else (),
    )


def changed_fleet(settings: PlannerSettings, name: str, **changed: object) -> PlannerSettings:
    """The settings with one fleet changed."""
    sectors = tuple(
        replace(
            sector,
            fleets=tuple(
                replace(f, **changed) if f.name == name else f  # type: ignore[arg-type] # by name
                for f in sector.fleets
            ),
        )
        for sector in settings.sectors
    )
    return replace(settings, sectors=sectors)
