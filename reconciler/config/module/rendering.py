"""What a config must state for its fleets to be rendered: variables, subnets and one Region."""

from collections.abc import Iterator
from typing import Final

from reconciler.config.faults import MODULE_MISSING, SEVERAL_REGIONS, ZONE_WITHOUT_SUBNET, quoted
from reconciler.config.module.fleet import WrittenFleet, rendered_fleets
from reconciler.config.resolve import ResolvedFleet, home_region_of, resolve_fleets
from reconciler.config.rules.document import Document, Location
from reconciler.config.schema import SectorConfig
from reconciler.model.errors import Problem

REQUIRED: Final = ("ami", "security_group_id", "private_subnet_ids")
"""Module variables without a default."""
_USED_BY_PLANNING: Final = frozenset(
    {
        "tags",
        "node_labels",
        "node_taints",
        "on_demand_prefer_no_schedule_taint",
        "ebs_size",
        "max_pods",
    }
)


def wants_rendering(config: SectorConfig) -> bool:
    """Whether a config is meant for Terraform: some level states what only Terraform uses.

    Tags, labels, taints, `ebs_size` and `max_pods` serve planning too, and a config of Kluster
    Fleet Manager states nothing of the kind.
    """
    if config.terraform.backend is not None:
        return True
    return any(
        value and key not in _USED_BY_PLANNING
        for fleet in resolve_fleets(config)
        for key, value in fleet.terraform.items()
    )


def unrenderable(document: Document, config: SectorConfig) -> Iterator[Problem]:
    """Why `render` refuses a config, beside the faults that hold for every command.

    A config that states nothing for Terraform is rendered as it is: whoever follows the
    migration from Kluster Fleet Manager adds the variables to the config later.
    """
    fleets = tuple(rendered_fleets(document, config))
    if wants_rendering(config):
        yield from missing_variables(document, fleets)
    for fleet in fleets:
        yield from _zone(fleet)
    yield from several_regions(document, config)


def missing_variables(
    document: Document, fleets: tuple[WrittenFleet, ...], severity: str = "error"
) -> Iterator[Problem]:
    """Required variables that no level states; once at the top when no fleet has one."""
    for key in REQUIRED:
        without = [fleet for fleet in fleets if not _is_given(fleet, key)]
        message = f"terraform.{key} is missing: the fleet's nodes cannot be launched without it"
        if len(without) < len(fleets):
            for fleet in without:
                location = fleet.node.location
                yield document.problem(MODULE_MISSING, location, message, severity=severity)
        elif without:
            top: Location = ("terraform",) if document.root.states("terraform") else ("sectors",)
            yield document.problem(MODULE_MISSING, top, message, severity=severity)


def _is_given(fleet: WrittenFleet, key: str) -> bool:
    """Whether a required variable is stated, or another one in its place."""
    instead = {
        "security_group_id": fleet.value("network_interfaces")
        or fleet.value("security_group_ids") is not None,
        "private_subnet_ids": fleet.value("overrides") is not None,
    }
    return bool(fleet.value(key) or instead.get(key))


def _zone(fleet: WrittenFleet) -> Iterator[Problem]:
    zone, subnets = fleet.fleet.entry.zone, fleet.value("private_subnet_ids")
    if zone and subnets and zone not in subnets:
        message = (
            f"zone {quoted(zone)} has no subnet in terraform.private_subnet_ids, which has"
            f" {', '.join(sorted(subnets))}"
        )
        location = (*fleet.node.location, "zone")
        yield fleet.document.problem(ZONE_WITHOUT_SUBNET, location, message)


def several_regions(
    document: Document, config: SectorConfig, severity: str = "error"
) -> Iterator[Problem]:
    """Fleets that a sector or the fleet itself puts into another Region than the home Region.

    Terraform roots of further Regions are not built yet. Top-level `regions` that a fleet only
    inherits are an order of preference for planning; such a fleet is rendered for home alone.
    """
    home = home_region_of(config)
    for fleet in rendered_fleets(document, config):
        named = fleet.fleet.entry.regions or fleet.fleet.sector.regions
        others = [region for region in fleet.fleet.regions if region != home]
        if not others or not (named or home not in fleet.fleet.regions):
            continue
        message = (
            f"it is in {', '.join(others)}, and only fleets of the home region {home} are rendered"
            " in this version: put the fleets of each region into a config of their own, whose"
            " `regions` is that region alone, and render each into a root of its own"
        )
        location = _where_regions(fleet)
        yield document.problem(SEVERAL_REGIONS, location, message, severity=severity)


def _where_regions(fleet: WrittenFleet) -> Location:
    """Where a fleet's Regions are written; the fleet when its zone decides."""
    entry: Location = (*fleet.node.location, "regions")
    sector: Location = ("sectors", fleet.fleet.sector_name, "regions")
    if fleet.node.entry.states("regions"):
        return entry
    return sector if fleet.node.sector.states("regions") else fleet.node.location


def inherited_regions(config: SectorConfig) -> tuple[str, ...]:
    """Regions of the top level that fleets inherit and nothing is rendered for."""

    def inherits(fleet: ResolvedFleet) -> bool:
        stated = fleet.entry.regions or fleet.sector.regions or fleet.entry.zone
        return fleet.entry.provider != "asg" and not stated

    if any(inherits(fleet) for fleet in resolve_fleets(config)):
        return config.regions[1:]
    return ()
