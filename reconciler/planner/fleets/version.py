"""What a fleet's nodes are made from: as long as it stays, what was found out about them holds."""

from functools import lru_cache

from reconciler.model.cluster import Resources, Taint
from reconciler.model.fleet import InstanceOption
from reconciler.model.frozen import Labels
from reconciler.planner.digests import digest_of
from reconciler.planner.fleets.inventory import FleetStatus


def version_of(status: FleetStatus) -> str:
    """Return a digest of what decides what its nodes are; prices and limits have no part in it."""
    live, fleet = status.live, status.settings
    template = (live.launch_template_id, live.launch_template_version) if live else ()
    return _digest(
        template, fleet.options, fleet.labels, fleet.taints, fleet.zone, fleet.allocatable
    )


@lru_cache(maxsize=1024)
def _digest(
    template: tuple[str, ...],
    options: tuple[InstanceOption, ...],
    labels: Labels,
    taints: tuple[Taint, ...],
    zone: str,
    allocatable: Resources | None,
) -> str:
    types = sorted((o.instance_type, o.arch) for o in options)
    return digest_of(template, types, labels, taints, zone, allocatable)
