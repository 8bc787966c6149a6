"""What the module refuses of overrides, tags and launch templates that a config states itself."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.config.faults import MODULE_LIMIT, MODULE_VALUE, quoted
from reconciler.config.module.fleet import WrittenFleet
from reconciler.model.errors import Problem

OVERRIDES_MAX: Final = 300
"""Of one fleet (EC2 Fleet quotas, read 2026)."""


def overrides_fit(fleet: WrittenFleet) -> Iterator[Problem]:
    """Check that overrides launch only the fleet's instance types."""
    overrides = fleet.value("overrides")
    if overrides is None or fleet.fleet.is_group:
        return
    own = fleet.text("launch_template_instance_type")
    if not overrides:
        if not own:
            message = "overrides: [] needs launch_template_instance_type"
            yield fleet.problem(MODULE_VALUE, "overrides", message)
        return
    types = set(fleet.fleet.instance_types)
    named = {override.instance_type or own or "none" for override in overrides}
    if named != types:
        message = (
            f"overrides must launch the fleet's instance types ({', '.join(sorted(types))}), not"
            f" {', '.join(sorted(named))}"
        )
        yield fleet.problem(MODULE_VALUE, "overrides", message)
    pools = [
        (override.instance_type or own, override.subnet_id, override.availability_zone)
        for override in overrides
    ]
    if len(set(pools)) < len(pools):
        message = "overrides must have each instance type in a subnet or zone once"
        yield fleet.problem(MODULE_VALUE, "overrides", message)
    if len(overrides) > OVERRIDES_MAX:
        message = f"{len(overrides)} overrides, EC2 takes {OVERRIDES_MAX} for one fleet"
        yield fleet.problem(MODULE_LIMIT, "overrides", message)


def subnets_differ(fleet: WrittenFleet) -> Iterator[Problem]:
    """Check that no subnet is named for two zones: it is in one, and EC2 refuses it twice."""
    counts = Counter((fleet.value("private_subnet_ids") or {}).values())
    twice = [subnet for subnet, count in counts.items() if count > 1]
    if twice:
        message = f"private_subnet_ids names {quoted(twice[0])} for several zones; it is in one"
        yield fleet.problem(MODULE_VALUE, "private_subnet_ids", message)


def templates_once(fleets: Sequence[WrittenFleet]) -> Iterator[Problem]:
    """Check that each fleet has a launch template of its own in its Region."""
    owners: dict[tuple[str | None, str], dict[str, WrittenFleet]] = {}
    for fleet in fleets:
        owners.setdefault((fleet.fleet.region, _template_name(fleet)), {})[fleet.fleet.name] = fleet
    reported: set[str] = set()
    for (_, name), sharing in owners.items():
        if len(sharing) == 1 or name in reported:
            continue
        reported.add(name)
        message = (
            f"the launch template {quoted(name)} would belong to {', '.join(sorted(sharing))}; each"
            " fleet needs one of its own"
        )
        stating = [
            written_fleet
            for written_fleet in sharing.values()
            if written_fleet.text("launch_template_name")
        ]
        first = next(iter(stating or sharing.values()))
        yield first.problem(MODULE_VALUE, "launch_template_name", message)


def _template_name(fleet: WrittenFleet) -> str:
    """Return the name of its launch template."""
    end = "-group" if fleet.fleet.is_group else ""
    default = f"{fleet.document.cluster or ''}-{fleet.fleet.name}{end}"
    return fleet.text("launch_template_name") or default


def fleet_tags_fit(fleet: WrittenFleet) -> Iterator[Problem]:
    """Check three of a fleet's tags, by which the capacity loop finds it."""
    tags = fleet.value("fleet_tags")
    if tags is None or fleet.fleet.is_group:
        return
    wanted = {
        "cluster": fleet.fleet.config.cluster or "",
        "sector": fleet.fleet.sector_name,
        "size": fleet.fleet.entry.size,
    }
    wrong = [f"{key}: {value}" for key, value in wanted.items() if tags.get(key) != value]
    if wrong and wanted["cluster"]:
        message = f"fleet_tags must have {', '.join(wrong)}: the fleet is found by them"
        yield fleet.problem(MODULE_VALUE, "fleet_tags", message)


def tags_name_no_other_cluster(fleet: WrittenFleet) -> Iterator[Problem]:
    """Check that what is stated as a whole has no other cluster's tag.

    Pipelines refuse every change of what carries one, and the other cluster may take it for its
    own.
    """
    cluster = fleet.document.cluster
    specified = fleet.value("tag_specifications") or ()
    group_tags = fleet.value("group_tags") or ()
    stated = {
        "launch_template_tags": [(fleet.value("launch_template_tags") or {}).get("cluster")],
        "tag_specifications": [each.tags.get("cluster") for each in specified],
        "group_tags": [group_tag.value for group_tag in group_tags if group_tag.key == "cluster"],
    }
    for key, values in stated.items():
        others = [value for value in values if value not in {None, cluster}]
        if others and cluster:
            message = (
                f"{key} must not have cluster: {others[0]}, which is another cluster's tag; state"
                f" cluster: {cluster}"
            )
            yield fleet.problem(MODULE_VALUE, key, message)


def template_fits(fleet: WrittenFleet) -> Iterator[Problem]:
    """Yield variables of the launch template that exclude each other."""
    if fleet.text("instance_profile_arn") and fleet.text("instance_profile_name"):
        message = "instance_profile_arn and instance_profile_name must not both be stated"
        yield fleet.problem(MODULE_VALUE, "instance_profile_arn", message)
    if fleet.text("bootstrap_arguments") and fleet.text("ami_type") != "AL2":
        message = "bootstrap_arguments is for ami_type AL2 only"
        yield fleet.problem(MODULE_VALUE, "bootstrap_arguments", message)
    devices = [volume.device_name for volume in fleet.value("volumes") or ()]
    if len(set(devices)) < len(devices):
        message = "volumes must have each device_name once"
        yield fleet.problem(MODULE_VALUE, "volumes", message)
