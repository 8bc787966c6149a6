"""Which of EC2's fleets are live, their names, what they launch, and their instances."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from reconciler.model.fleet import TEMPLATE_ID_TAG, Fleet, Instance, Provider
from reconciler.model.ids import FleetKey
from reconciler.model.snapshot import CloudState, Ignored, Snapshot
from reconciler.planner.settings import PlannerSettings

LIVE_STATES = frozenset({"active", "modifying", "submitted"})
_WORDS = "$"
"""The prefix of versions that a fleet names by a word, such as `$Latest`."""


def live_fleets(cloud: CloudState | None) -> dict[FleetKey, Fleet]:
    """Return the live fleets by name and region; of several the oldest, so that it is stable."""
    fleets: dict[FleetKey, Fleet] = {}
    for fleet in sorted(
        cloud.fleets if cloud else (), key=lambda f: (str(f.created_at or ""), f.id)
    ):
        if fleet.state in LIVE_STATES:
            fleets.setdefault(FleetKey(name=fleet.name, region=fleet.region), fleet)
    return fleets


def is_version_known(live: Fleet) -> bool:
    """Return whether it is known from which version of its launch template the fleet launches.

    It is not if the fleet names it by a word and EC2 has not returned the number, which takes
    another call. A fleet without a launch template has none to return.
    """
    return not live.launch_template_version.startswith(_WORDS)


def versions_launched(live: Fleet, instance: Instance) -> tuple[str, ...]:
    """Return the versions that the fleet launches of the instance's launch template, each once.

    Empty if the instance is from a template from which the fleet no longer launches. If the
    instance does not say from which template it is, those of all the fleet's templates.
    """
    first = (live.launch_template_id, live.launch_template_version)
    template = instance.tags.get(TEMPLATE_ID_TAG, "")
    return _versions_of(template, (first, *live.further_templates))


@lru_cache(maxsize=1024)
def _versions_of(template: str, templates: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the versions of a template; of all of them if the template is not known."""
    versions = (v for each, v in templates if not template or not each or each == template)
    return tuple(dict.fromkeys(versions))


def is_of_template(live: Fleet | None, instance: Instance | None) -> bool:
    """Return whether an instance was launched from what its fleet launches from now.

    If either version is not known as a number they count as the same.
    """
    if live is None or instance is None:
        return True
    own, present = instance.launch_template_version, versions_launched(live, instance)
    return not (own.isdigit() and all(map(str.isdigit, present))) or own in present


def of_same_name(cloud: CloudState | None, settings: PlannerSettings) -> list[Ignored]:
    """Return live fleets whose name an older one of their region has, if the config names it."""
    chosen = live_fleets(cloud)
    named = {key for fleet in settings.fleets() for key in fleet.fleet_keys()}
    return [
        Ignored(code="same-name", kind="Fleet", name=fleet.id)
        for fleet in (cloud.fleets if cloud else ())
        if fleet.state in LIVE_STATES
        and (key := FleetKey(name=fleet.name, region=fleet.region)) in named
        and chosen[key].id != fleet.id
    ]


def fleet_keys_by_instance(cloud: CloudState, settings: PlannerSettings) -> dict[str, FleetKey]:
    """Return the fleet of the config of which each instance is a member, without other instances.

    An instance that a deleted fleet of the same name left behind, or that belongs to a second fleet
    of that name, does not count in the first one's target, and is no member of it.
    """
    known = {key for fleet in settings.fleets() for key in fleet.fleet_keys()}
    owners = {(f.region, f.id): key for key, f in live_fleets(cloud).items() if key in known}
    return {
        instance.id: owners[instance.region, instance.fleet_id]
        for instance in cloud.instances
        if instance.fleet_id is not None and (instance.region, instance.fleet_id) in owners
    }


def with_config_names(snapshot: Snapshot, settings: PlannerSettings) -> Snapshot:
    """Return the snapshot with Auto Scaling groups named as the fleets of the config that use them.

    Anything else with the name of a fleet of the config, such as the EC2 Fleet that the group
    replaced, or the group that an EC2 Fleet replaced, loses that name.
    """
    if snapshot.cloud is None:
        return snapshot
    groups = {f.auto_scaling_group: f.name for f in settings.fleets() if f.auto_scaling_group}
    providers = {f.name: f.provider for f in settings.fleets()}
    taken = frozenset(groups.values())
    fleets = tuple(
        replace(f, name=_name_of(f, groups, taken, providers)) for f in snapshot.cloud.fleets
    )
    return replace(snapshot, cloud=replace(snapshot.cloud, fleets=fleets))


def _name_of(
    fleet: Fleet,
    groups: Mapping[str, str],
    taken: frozenset[str],
    providers: Mapping[str, Provider],
) -> str:
    if fleet.provider == "asg" and fleet.id in groups:
        return groups[fleet.id]
    of_another = providers.get(fleet.name, fleet.provider) != fleet.provider
    return fleet.id if fleet.name in taken or of_another else fleet.name
