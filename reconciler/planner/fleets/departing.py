"""Departing fleets: left alone unless `allow_destroy` lists them.

These are fleets that the config no longer names, or no longer in that region, and those that it
names with another capacity type: EC2 cannot change that of a live fleet, so that the apply creates
a new one.
"""

from collections.abc import Iterable
from dataclasses import replace

from reconciler.model.cluster import NO_RESOURCES, Node
from reconciler.model.fleet import Fleet, InstanceOption
from reconciler.model.ids import FleetKey, Region
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.planner.demand import FLEET, SECTOR, SIZE
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.fleets.live_fleet import LIVE_STATES, live_fleets
from reconciler.planner.placement.kinds import REGION
from reconciler.planner.settings import FleetSettings, PlannerSettings, SectorSettings

_ALWAYS_UNNEEDED = 2.0
"""A utilisation above that of any node."""


def with_departing(snapshot: Snapshot, settings: PlannerSettings) -> PlannerSettings:
    """Return the settings with every live fleet that the config lacks and `allow_destroy` lists.

    Such a fleet may hold nothing and buy nothing; its nodes are unneeded at once and leave by the
    usual steps, under the usual rules, limits and budgets. The same applies in a region in which
    the config no longer has the fleet, while the fleet continues in its other regions. A fleet that
    the config has with another capacity type departs as well, until its replacement exists.
    """
    if snapshot.cloud is None or not settings.allow_destroy:
        return settings
    staying = {fleet.name: fleet for fleet in settings.fleets()}
    known = {key for fleet in settings.fleets() for key in fleet.fleet_keys()}
    by_name: dict[str, list[Fleet]] = {}
    for live in snapshot.cloud.fleets:
        key = FleetKey(name=live.name, region=live.region)
        allowed = live.name in settings.allow_destroy and key not in known
        if allowed and live.state in LIVE_STATES:
            by_name.setdefault(live.name, []).append(live)
    for name in sorted(by_name):
        settings = _with_fleet(settings, _departing(settings, by_name[name], staying.get(name)))
    return _with_replaced(snapshot.cloud, settings)


def regions_to_observe(nodes: Iterable[Node], settings: PlannerSettings) -> tuple[Region, ...]:
    """Return the config's regions, home first, and those of nodes whose fleet may be destroyed.

    The config may no longer name such a region; EC2 must be asked there until the nodes are gone.

    Args:
        nodes: Nodes of the cluster as last seen; empty at the start.
        settings: The sector config, resolved.
    """
    going = {
        Region(node.labels[REGION])
        for node in nodes
        if node.labels.get(FLEET) in settings.allow_destroy and node.labels.get(REGION)
    }
    return tuple(dict.fromkeys((*settings.observed_regions, *sorted(going))))


def _with_replaced(cloud: CloudState, settings: PlannerSettings) -> PlannerSettings:
    """Return the settings in which fleets that wait for their replacement hold and buy nothing."""
    live = live_fleets(cloud)
    going = {
        fleet.name
        for fleet in settings.fleets()
        if fleet.name in settings.allow_destroy
        for key in fleet.fleet_keys()[:1]
        if key in live and has_other_capacity_type(live[key], fleet)
    }
    if not going:
        return settings
    sectors = (
        replace(sector, fleets=tuple(_emptied(f) if f.name in going else f for f in sector.fleets))
        for sector in settings.sectors
    )
    return replace(settings, sectors=tuple(sectors))


def has_other_capacity_type(live: Fleet, fleet: FleetSettings) -> bool:
    """Return whether its tag names another capacity type; without a tag it does not."""
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


def _departing(
    settings: PlannerSettings, lives: Iterable[Fleet], staying: FleetSettings | None
) -> FleetSettings:
    """Return the settings of departing live fleets of one name.

    Args:
        settings: The config's settings.
        lives: The live fleets.
        staying: The fleet of their name that the config has in other regions; None if it has none.
    """
    fleets = sorted(lives, key=lambda live: (live.region, live.id))
    regions = tuple(dict.fromkeys(Region(live.region) for live in fleets))
    if staying is not None:
        # The budgets of the fleet count its nodes in every region, including these.
        return replace(_emptied(staying), regions=regions, disruption_budgets=())
    name, tags = fleets[0].name, fleets[0].tags
    sectors = {sector.name: sector.scale_in for sector in settings.sectors}
    usual = sectors.get(tags.get(SECTOR, ""), settings.scale_in)
    types = sorted({each for live in fleets for each in live.instance_types}) or [""]
    return FleetSettings(
        name=name,
        sector=tags.get(SECTOR, name),
        kind=tags.get("kind", ""),
        size=tags.get(SIZE, ""),
        provider=fleets[0].provider,
        auto_scaling_group=fleets[0].id if fleets[0].provider == "asg" else None,
        spot=tags.get("Spot") != "false",
        regions=regions,
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
