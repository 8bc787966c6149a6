"""Fleets that are to go: left alone, until `allow_destroy` says otherwise.

Those that the config no longer names, and those that it names with another capacity type: EC2
cannot change that of a living fleet, so that the apply makes a new one in its place.
"""

from collections.abc import Iterable
from dataclasses import replace

from reconciler.model.cluster import NO_RESOURCES
from reconciler.model.fleet import Fleet, InstanceOption
from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.planner.demand import FLEET, SECTOR, SIZE
from reconciler.planner.fleets.live import LIVE_STATES, live_fleets
from reconciler.planner.settings import (
    FleetSettings,
    PlannerSettings,
    ScaleInSettings,
    SectorSettings,
)

_ALWAYS_UNNEEDED = 2.0
"""A utilisation that no node reaches."""


def with_departing(snapshot: Snapshot, settings: PlannerSettings) -> PlannerSettings:
    """The settings with every fleet that EC2 has, the config has not, and `allow_destroy` lists.

    Such a fleet may hold nothing and buy nothing; its nodes are unneeded at once and go by the
    usual steps, under the usual rules, limits and budgets. One that the config has with another
    capacity type departs as well, until the one that takes its place is there.
    """
    if snapshot.cloud is None or not settings.allow_destroy:
        return settings
    known = {fleet.name for fleet in settings.fleets()}
    by_name: dict[str, list[Fleet]] = {}
    for live in snapshot.cloud.fleets:
        allowed = live.name in settings.allow_destroy and live.name not in known
        if allowed and live.state in LIVE_STATES:
            by_name.setdefault(live.name, []).append(live)
    for name in sorted(by_name):
        settings = _with_fleet(settings, _departing(settings, name, by_name[name]))
    return _with_replaced(snapshot.cloud, settings)


def _with_replaced(cloud: CloudState, settings: PlannerSettings) -> PlannerSettings:
    """The settings in which fleets that wait for their replacement hold nothing and buy nothing."""
    live = live_fleets(cloud)
    going = {
        fleet.name
        for fleet in settings.fleets()
        if fleet.name in settings.allow_destroy
        for key in fleet.fleet_keys()[:1]
        if key in live and _has_other_capacity_type(live[key], fleet)
    }
    if not going:
        return settings
    sectors = (
        replace(sector, fleets=tuple(_emptied(f) if f.name in going else f for f in sector.fleets))
        for sector in settings.sectors
    )
    return replace(settings, sectors=tuple(sectors))


def _has_other_capacity_type(live: Fleet, fleet: FleetSettings) -> bool:
    """Return whether its tag names another capacity type; without a tag the config is believed."""
    stated = {"true": True, "false": False}.get(live.tags.get("Spot", ""))
    return live.provider == "ec2-fleet" and stated is not None and stated != fleet.spot


def _emptied(fleet: FleetSettings) -> FleetSettings:
    return replace(
        fleet,
        min_capacity=0,
        max_capacity=0,
        departing=True,
        scale_in=_at_once(fleet.scale_in),
    )


def _at_once(usual: ScaleInSettings) -> ScaleInSettings:
    """Return settings by which nodes are unneeded at once, whatever runs there."""
    return replace(
        usual,
        idle_threshold_seconds=0,
        type_spares=0,
        unneeded_seconds=0,
        utilization_threshold=_ALWAYS_UNNEEDED,
    )


def _departing(settings: PlannerSettings, name: str, lives: Iterable[Fleet]) -> FleetSettings:
    found = sorted(lives, key=lambda live: (live.region, live.id))
    tags, first = found[0].tags, next(iter(settings.fleets()), None)
    usual = first.scale_in if first is not None else ScaleInSettings()
    types = sorted({each for live in found for each in live.instance_types}) or [""]
    return FleetSettings(
        name=name,
        sector=tags.get(SECTOR, name),
        kind=tags.get("kind", ""),
        size=tags.get(SIZE, ""),
        provider=found[0].provider,
        auto_scaling_group=found[0].id if found[0].provider == "asg" else None,
        spot=tags.get("Spot") != "false",
        regions=tuple(dict.fromkeys(Region(live.region) for live in found)),
        max_capacity=0,
        departing=True,
        labels=type(tags)({FLEET: name}),
        options=tuple(
            InstanceOption(instance_type=each, resources=NO_RESOURCES, usd_per_hour=None)
            for each in types
        ),
        scale_in=_at_once(usual),
    )


def _with_fleet(settings: PlannerSettings, fleet: FleetSettings) -> PlannerSettings:
    """Return the settings with one more fleet, in its sector or in a sector of its own."""
    sectors = list(settings.sectors)
    for index, sector in enumerate(sectors):
        if sector.name == fleet.sector:
            sectors[index] = replace(sector, fleets=(*sector.fleets, fleet))
            return replace(settings, sectors=tuple(sectors))
    own = SectorSettings(name=fleet.sector, kind=fleet.kind, fleets=(fleet,))
    return replace(settings, sectors=(*sectors, own))
