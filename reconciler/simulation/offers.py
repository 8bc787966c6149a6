"""The fleets of a config in the in-memory world: types, zones, prices, node labels."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.adapters.memory import FleetShape
from reconciler.model.cluster import NO_RESOURCES, Node, Resources
from reconciler.model.demand import DemandLine, NodeFact
from reconciler.model.fleet import GROUP_SIZE_MAX_DEFAULT, InstanceOption
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.ids import NodeName, Region
from reconciler.planner.fleets.new_nodes.daemons_that_fit import without_system
from reconciler.planner.fleets.new_nodes.learned_resources import FROM_THE_START
from reconciler.planner.fleets.new_nodes.new_node import usual_usd_per_hour
from reconciler.planner.placement.kinds import (
    ARCH,
    INSTANCE_TYPE,
    OPERATING_SYSTEM,
    REGION,
    with_older_keys,
)
from reconciler.planner.settings import FleetSettings, PlannerSettings
from reconciler.planner.system_reserve import NodeReserve

ZONES_OF_A_REGION = ("a", "b", "c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Nodes of one type that a fleet may launch."""

    fleet: FleetSettings
    region: Region
    instance_type: str
    usd_per_hour: float
    priced: bool
    allocatable: Resources
    labels: Labels
    """Labels of the fleet and the type, without zone and name."""

    def node(self, zone: str = "") -> Node:
        """Return a node of it."""
        return Node(
            name=NodeName(f"{self.fleet.name}/{self.instance_type}"),
            labels=FrozenMap({**self.labels, "topology.kubernetes.io/zone": zone}),
            taints=self.fleet.taints,
            allocatable=self.allocatable,
        )


NO_NAMES: Final[Mapping[str, str]] = FrozenMap()


def offers_of(
    settings: PlannerSettings,
    lines: Iterable[DemandLine] = (),
    fleet_of: Mapping[str, str] = NO_NAMES,
) -> list[Offer]:
    """Return every type of every fleet in each of its regions, a fleet's cheapest first.

    Args:
        settings: The fleets.
        lines: Demand. Where nodes of a type were recorded with it, the type offers what they did:
            those of the same fleet, else of any other; the latest, and devices that only earlier
            ones had.
        fleet_of: What the demand calls fleets that have another name in the settings.
    """
    known = _recorded(lines)
    offers = []
    for fleet, region in fleets_of(settings):
        made, reserve = [], settings.reserve.of(fleet.provider)
        for option in fleet.options:
            kind, called = option.instance_type, fleet_of.get(fleet.name, fleet.name)
            offered = known.get((called, kind)) or known.get(("", kind))
            made.append(_offer(fleet, region, option, reserve, offered))
        offers += sorted(made, key=lambda offer: (offer.usd_per_hour, offer.instance_type))
    return offers


def _recorded(lines: Iterable[DemandLine]) -> Mapping[tuple[str, str], Resources]:
    """Return what nodes offered, by fleet and type; under an empty fleet name by type only.

    A node that has just joined lacks its devices until their plugin has registered them.
    """
    found: dict[tuple[str, str], Resources] = {}
    for line in lines:
        if isinstance(line, NodeFact):
            offered = line.allocatable
            before = found.get((line.fleet, line.instance_type), NO_RESOURCES)
            missing = (name for name in before if not offered.get(name))
            devices = {name: before[name] for name in missing if name not in FROM_THE_START}
            for fleet in (line.fleet, ""):
                found[fleet, line.instance_type] = FrozenMap({**offered, **devices})
    return found


def fleets_of(settings: PlannerSettings) -> Iterator[tuple[FleetSettings, Region]]:
    """Yield the fleets, once for each of their regions."""
    for fleet in settings.fleets():
        for key in fleet.fleet_keys():
            yield fleet, key.region


def zones_of(fleet: FleetSettings, region: Region) -> tuple[str, ...]:
    """Return its zones; a usual number of zones where the config does not name them."""
    if fleet.zone is not None:
        return (fleet.zone,)
    own = tuple(zone for zone in fleet.zones if zone.startswith(region))
    return own or tuple(f"{region}{letter}" for letter in ZONES_OF_A_REGION)


def shape_of(fleet: FleetSettings, region: Region, offers: Iterable[Offer]) -> FleetShape:
    """Return a fleet of these offers as Terraform makes it."""
    mine = [offer for offer in offers if offer.fleet is fleet and offer.region == region]
    zones = zones_of(fleet, region)
    is_ours = fleet.provider == "asg" and fleet.managed
    return FleetShape(
        name=fleet.name,
        region=region,
        labels=fleet.labels,
        taints=fleet.taints,
        allocatable=mine[0].allocatable,
        instance_type=mine[0].instance_type,
        zone=zones[0],
        lifecycle=fleet.lifecycle,
        provider=fleet.provider,
        group=fleet.auto_scaling_group or "",
        min_size=0 if is_ours else None,
        max_size=(fleet.max_capacity or GROUP_SIZE_MAX_DEFAULT) if is_ours else None,
        tags=FrozenMap(_tags(fleet)),
        pools=tuple((offer.instance_type, zone) for offer in mine for zone in zones),
        offers=FrozenMap({offer.instance_type: offer.allocatable for offer in mine}),
        type_labels=FrozenMap({offer.instance_type: offer.labels for offer in mine}),
        spreads_zones=True,
    )


def _tags(fleet: FleetSettings) -> dict[str, str]:
    tags = {"sector": fleet.sector, "size": fleet.size, "Spot": "true" if fleet.spot else "false"}
    return tags | ({"zone": fleet.zone} if fleet.zone else {})


def _offer(
    fleet: FleetSettings,
    region: Region,
    option: InstanceOption,
    reserve: NodeReserve,
    offered: Resources | None,
) -> Offer:
    """Return the offer of one type; nodes of it offer what was recorded, else what is expected."""
    usd, kind = option.usd_per_hour, option.instance_type
    return Offer(
        fleet=fleet,
        region=region,
        instance_type=kind,
        usd_per_hour=usual_usd_per_hour(option.resources) if usd is None else float(usd),
        priced=usd is not None,
        allocatable=offered or _allocatable(fleet, option, reserve),
        labels=FrozenMap(
            {
                **fleet.labels,
                **with_older_keys(
                    {
                        ARCH: option.arch,
                        OPERATING_SYSTEM: "linux",
                        REGION: region,
                        INSTANCE_TYPE: kind,
                    }
                ),
            }
        ),
    )


def _allocatable(fleet: FleetSettings, option: InstanceOption, reserve: NodeReserve) -> Resources:
    """Return what planning expects of a new node (see `planner.fleets.new_nodes`)."""
    if fleet.allocatable is not None:
        return fleet.allocatable
    left = dict(option.resources)
    if fleet.ephemeral_storage_bytes:
        left["ephemeral-storage"] = fleet.ephemeral_storage_bytes
    rest = {name: max(0, n - reserve.amounts.get(name, 0)) for name, n in left.items()}
    if reserve.as_eks:
        estimated = without_system(left)
        rest |= {name: estimated[name] for name in reserve.as_eks}
    return FrozenMap({**rest, **option.allocatable})
