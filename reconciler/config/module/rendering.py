"""What a config must state to be rendered: variables and subnets, per Region."""

from collections.abc import Iterator
from typing import Final

from reconciler.config.faults import MODULE_MISSING, ZONE_WITHOUT_SUBNET, quoted
from reconciler.config.module.fleet import WrittenFleet, rendered_fleets
from reconciler.config.resolve import resolve_fleets
from reconciler.config.rules.document import Document, Location
from reconciler.config.schema import SectorConfig
from reconciler.config.terraform import TerraformVariables
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
    """Return whether a config is meant for Terraform: some level has what only Terraform uses.

    Tags, labels, taints, `ebs_size` and `max_pods` serve planning too, and a config of Kluster
    Fleet Manager has none of these.
    """
    top = config.terraform
    sectors = config.sectors.values()
    levels: list[TerraformVariables | None] = [top, *top.by_region.values()]
    levels += [sector.terraform for sector in sectors]
    levels += [fleet.terraform for sector in sectors for fleet in sector.fleets]
    return any(
        value and key not in _USED_BY_PLANNING
        for level in filter(None, levels)
        for key, value in level.given().items()
    )


def unrenderable(document: Document, config: SectorConfig) -> Iterator[Problem]:
    """Yield why `render` refuses a config, in addition to the faults for every command.

    A config without anything for Terraform is rendered as it is: in a migration from Kluster Fleet
    Manager the variables are added later.
    """
    fleets = tuple(rendered_fleets(document, config))
    if wants_rendering(config):
        yield from missing_variables(document, fleets)
    for fleet in fleets:
        yield from _zone(fleet)


def missing_variables(
    document: Document, fleets: tuple[WrittenFleet, ...], severity: str = "error"
) -> Iterator[Problem]:
    """Yield required variables that no level states; once per Region where no fleet has one."""
    by_region: dict[str | None, list[WrittenFleet]] = {}
    for fleet in fleets:
        by_region.setdefault(fleet.further_region, []).append(fleet)
    for region, written_fleets in by_region.items():
        for key in REQUIRED:
            yield from _missing(document, written_fleets, region, key, severity)


def _missing(
    document: Document, fleets: list[WrittenFleet], region: str | None, key: str, severity: str
) -> Iterator[Problem]:
    """Yield that one variable is missing for fleets of one Region; None is the home Region."""
    without = [fleet for fleet in fleets if not _is_given(fleet, key)]
    path = key if region is None else f"by_region.{region}.{key}"
    message = f"terraform.{path} is missing: the fleet's nodes cannot be launched without it"
    if len(without) < len(fleets):
        for fleet in without:
            location = fleet.node.location
            yield document.problem(MODULE_MISSING, location, message, severity=severity)
    elif without:
        top: Location = ("terraform",) if document.root.states("terraform") else ("sectors",)
        yield document.problem(MODULE_MISSING, top, message, severity=severity)


def _is_given(fleet: WrittenFleet, key: str) -> bool:
    """Return whether a required variable is stated, or another one that replaces it."""
    instead = {
        "security_group_id": fleet.value("network_interfaces")
        or fleet.value("security_group_tags")
        or fleet.value("security_group_ids") is not None,
        "private_subnet_ids": fleet.value("subnet_tags") or fleet.value("overrides") is not None,
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


def unrendered_regions(config: SectorConfig) -> tuple[str, ...]:
    """Return the Regions of fleets that are not rendered for them, in order of preference."""
    left = {
        region
        for fleet in resolve_fleets(config)
        if fleet.is_rendered
        for region in set(fleet.regions) - set(fleet.rendered_regions)
    }
    return tuple(region for region in config.regions if region in left)
