"""Converts the fleets of a config into the groups of another autoscaler."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.planner.settings import FleetSettings, PlannerSettings
from reconciler.simulation.offers import zones_of

REGISTRATION_SECONDS = 900.0
"""An instance that is no node by then is ended, whatever the config says: Cluster Autoscaler's
`max-node-provision-time`, and how long Karpenter waits for a registration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Settings in which each fleet is a group of one zone."""

    settings: PlannerSettings
    fleet_of: Mapping[str, str]
    """The fleet of the config, by the group's name."""
    most: Mapping[str, int]
    """`max_capacity` of the fleets that have one, which their groups share."""


def by_zone(settings: PlannerSettings) -> Groups:
    """Return a group for each fleet and zone; the groups share the fleet's minimum."""
    return _split(settings, by_type=False)


def by_type_and_zone(settings: PlannerSettings) -> Groups:
    """Return a group for each fleet, instance type and zone, without a minimum."""
    return _split(settings, by_type=True)


def _split(settings: PlannerSettings, *, by_type: bool) -> Groups:
    fleet_of: dict[str, str] = {}
    sectors = []
    for sector in settings.sectors:
        groups: list[FleetSettings] = []
        for fleet in sector.fleets:
            made = list(_parts(fleet, settings, by_type=by_type))
            fleet_of.update(dict.fromkeys((each.name for each in made), fleet.name))
            groups += made
        sectors.append(replace(sector, fleets=tuple(groups)))
    most = {f.name: f.max_capacity for f in settings.fleets() if f.max_capacity is not None}
    home = (settings.home_region,)
    return Groups(
        settings=replace(
            settings,
            regions=home,
            sectors=tuple(sectors),
            headroom=(),
            instance_init_seconds=REGISTRATION_SECONDS,
        ),
        fleet_of=fleet_of,
        most=most,
    )


def _parts(
    fleet: FleetSettings, settings: PlannerSettings, *, by_type: bool
) -> Iterator[FleetSettings]:
    """Yield the groups of a fleet in the home region, none if it is not there.

    The first keeps the fleet's name.
    """
    home = settings.home_region
    if home not in fleet.regions:
        return
    zones = zones_of(fleet, home)
    choices = [(option,) for option in fleet.options] if by_type else [fleet.options]
    parts = [(options, zone) for options in choices for zone in zones]
    for number, (options, zone) in enumerate(parts):
        name = "/".join([fleet.name, *([options[0].instance_type] if by_type else []), zone])
        least = 0 if by_type else _share(fleet.min_capacity, number, len(parts))
        yield replace(
            fleet,
            name=name if number else fleet.name,
            auto_scaling_group=name if fleet.provider == "asg" else None,
            zone=zone,
            zones=(zone,),
            regions=(home,),
            options=options,
            usd_per_hour=options[0].usd_per_hour if by_type else fleet.usd_per_hour,
            min_capacity=least,
            over_subscription=0.0,
        )


def _share(amount: int, number: int, of: int) -> int:
    return amount // of + (number < amount % of)
