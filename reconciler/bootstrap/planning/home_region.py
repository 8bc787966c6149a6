"""The home region of a config without `regions` that is planned from files.

A live program takes that of the AWS settings. Files may be of another cluster than these settings,
so what the files show counts first.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet

from reconciler.adapters.files import UNSTATED, CloudFiles
from reconciler.config.resolve import resolve_fleets
from reconciler.config.schema import SectorConfig
from reconciler.model.cluster import Node
from reconciler.model.errors import PortError
from reconciler.model.ids import REGION_FORM, Region
from reconciler.planner.demand import FLEET
from reconciler.planner.placement.kinds import REGION

_REGION_OF_ZONE = re.compile(REGION_FORM, re.ASCII)


def offline_home_region(
    config: SectorConfig,
    nodes: Sequence[Node],
    files: CloudFiles | None = None,
) -> str | None:
    """Return the home region for a plan from files; None if nothing shows it.

    In this order: the first that the config names; what the files show (`shown_region`); that of
    the AWS settings.

    Args:
        config: A valid config.
        nodes: The nodes of the cluster's files.
        files: EC2's answers; None without any.
    """
    if config.regions:
        return config.regions[0]
    return shown_region(config, nodes, files) or _region_of_aws_settings()


def shown_region(
    config: SectorConfig, nodes: Sequence[Node], files: CloudFiles | None
) -> Region | None:
    """Return the region in which files show a config's fleets without regions; None if unclear.

    The first of these that names one region alone: the regions that EC2's answers state; the labels
    of the fleets' nodes; those of all nodes; the zones of our groups and instances in answers that
    state no region. A region that another fleet of the config names counts only where there is no
    other.

    Args:
        config: A valid config without `regions`.
        nodes: The nodes of the cluster's files.
        files: EC2's answers; None without any.
    """
    fleets = resolve_fleets(config)
    named = frozenset(Region(region) for fleet in fleets for region in fleet.regions)
    at_home = {fleet.name for fleet in fleets if not fleet.regions}
    return (
        _only(_stated(files, named), named)
        or _only(_labelled([n for n in nodes if n.labels.get(FLEET) in at_home]), named)
        or _only(_labelled(nodes), named)
        or _only(frozenset(_of_zones(files, config)), named)
    )


def _only(shown: AbstractSet[Region], named: AbstractSet[Region]) -> Region | None:
    """Return the one region that is shown, of several the one that no fleet names."""
    regions = shown - named or shown
    return next(iter(regions)) if len(regions) == 1 else None


def _stated(files: CloudFiles | None, named: AbstractSet[Region]) -> AbstractSet[Region]:
    """Return the regions that answers state; beside answers without one, only what may be home."""
    if files is None:
        return frozenset()
    return files.stated_regions - named if files.leave_regions_open else files.stated_regions


def _labelled(nodes: Collection[Node]) -> frozenset[Region]:
    return frozenset(Region(node.labels[REGION]) for node in nodes if node.labels.get(REGION))


def _of_zones(files: CloudFiles | None, config: SectorConfig) -> Iterator[Region]:
    """Yield the regions of the zones in answers that state no region."""
    if files is None or not files.leave_regions_open:
        return
    groups = frozenset(f.entry.auto_scaling_group or "" for f in resolve_fleets(config))
    ours = files.of_region(UNSTATED, cluster=config.cluster or "", groups=groups - {""})
    cloud = ours.observe([UNSTATED])
    zones = {zone for fleet in cloud.fleets if fleet.region == UNSTATED for zone in fleet.zones}
    zones.update(instance.zone for instance in cloud.instances if instance.region == UNSTATED)
    for zone in sorted(zones):
        region = _REGION_OF_ZONE.match(zone)
        if region is not None:
            yield Region(region.group())


def _region_of_aws_settings() -> str | None:
    """Return the region of the AWS settings; None also where they cannot be read.

    An offline plan needs no AWS, so faulty settings must not end it.
    """
    # boto3 is slow to load, and most offline plans do not need it.
    from reconciler.adapters.aws import home_region  # noqa: PLC0415 - as above

    try:
        return home_region()
    except PortError:
        return None
