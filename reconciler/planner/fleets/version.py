"""Version of a fleet's definition: digests of its config and launch template.

While it is the same, what was learned about the fleet's nodes still applies.
"""

from functools import lru_cache

from reconciler.model.cluster import Resources, Taint
from reconciler.model.fleet import Fleet, InstanceOption
from reconciler.model.frozen import Labels
from reconciler.planner.digests import digest_of
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.live_fleet import is_version_known


def version_of(status: FleetStatus) -> str:
    """Return what decides what its nodes are, as two digests: `<config>-<launch template>`.

    Prices and limits are not part of it. The second one is empty while it is unknown.
    """
    live, fleet = status.live, status.settings
    config = _digest(fleet.options, fleet.labels, fleet.taints, fleet.zone, fleet.allocatable)
    return f"{config}-{template_of(live)}"


def template_of(live: Fleet | None) -> str:
    """Return a digest of the launch template that it launches from; empty while it is unknown."""
    if live is None:
        return digest_of(())
    named = (live.launch_template_id, live.launch_template_version)
    return digest_of(named) if is_version_known(live) else ""


def has_changed(now: str, noted: str) -> bool:
    """Return whether a fleet launches other nodes now than when its version was noted.

    If the launch template is unknown, now or then, nothing has changed.
    """
    (config, _, template), (before, _, template_before) = now.partition("-"), noted.partition("-")
    return config != before or bool(template and template_before and template != template_before)


def to_note(now: str, noted: str) -> str:
    """Return the version to note next: while it is unknown, the one noted before."""
    return noted if now.endswith("-") and not has_changed(now, noted) else now


@lru_cache(maxsize=1024)
def _digest(
    options: tuple[InstanceOption, ...],
    labels: Labels,
    taints: tuple[Taint, ...],
    zone: str,
    allocatable: Resources | None,
) -> str:
    types = sorted((o.instance_type, o.arch) for o in options)
    return digest_of(types, labels, taints, zone, allocatable)
