"""Reads what adopting a cluster's fleets and groups needs from one region."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.paging import chunks, entries
from reconciler.model.errors import Forbidden
from reconciler.model.ids import Region
from reconciler.records.aws import Answer

IDS_MAX = 200
VERSIONS = ["$Latest", "$Default"]


def read_adoptable(region: Region) -> tuple[list[Answer], tuple[str, ...]]:
    """Return fleets, templates, subnets and Auto Scaling groups; and what could not be read.

    Rights: ec2:DescribeFleets, ec2:DescribeLaunchTemplates, ec2:DescribeLaunchTemplateVersions,
    ec2:DescribeSubnets, autoscaling:DescribeAutoScalingGroups. Without the last a cluster of
    fleets is still described.

    Raises:
        PortError: EC2 or Auto Scaling did not answer, or EC2 denies access.
    """
    missing: list[str] = []
    with closing(Clients()) as clients:
        ec2 = clients.ec2(region)
        fleets = entries(ec2, "describe_fleets", "Fleets", {})
        groups: list[dict[str, Any]] = []
        answers: list[Answer] = [{"Fleets": fleets}]
        try:
            auto_scaling, operation = clients.autoscaling(region), "describe_auto_scaling_groups"
            groups = entries(auto_scaling, operation, "AutoScalingGroups", {})
            answers.append({"AutoScalingGroups": groups})
        except Forbidden as error:
            missing.append(f"Auto Scaling groups, of which nothing was read: {error.what}")
        templates = _templates(fleets, groups)
        for by, names in templates.items():
            for chunk in chunks(sorted({name for name, _ in names}), IDS_MAX):
                operation, key = "describe_launch_templates", "LaunchTemplates"
                answers.append({key: entries(ec2, operation, key, {f"{by}s": chunk})})
            for name, numbers in _versions(names).items():
                arguments = {by: name, "Versions": [*VERSIONS, *numbers]}
                operation, key = "describe_launch_template_versions", "LaunchTemplateVersions"
                answers.append({key: entries(ec2, operation, key, arguments)})
        for chunk in chunks(_subnet_ids(fleets, groups), IDS_MAX):
            filters = [{"Name": "subnet-id", "Values": chunk}]
            found = entries(ec2, "describe_subnets", "Subnets", {"Filters": filters})
            answers.append({"Subnets": found})
    return answers, tuple(missing)


def _templates(
    fleets: Sequence[dict[str, Any]], groups: Sequence[dict[str, Any]]
) -> dict[str, set[tuple[str, str]]]:
    """Return templates and versions that these launch from, by EC2's argument for them."""
    found: dict[str, set[tuple[str, str]]] = {
        "LaunchTemplateId": set(),
        "LaunchTemplateName": set(),
    }
    configs = [
        launch_template_config
        for fleet in fleets
        for launch_template_config in fleet.get("LaunchTemplateConfigs", [])
    ]
    configs += [group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {}) for group in groups]
    named = [config.get("LaunchTemplateSpecification", {}) for config in configs]
    for specification in (*named, *(group.get("LaunchTemplate", {}) for group in groups)):
        by = next((key for key in found if specification.get(key)), None)
        if by:
            found[by].add((specification[by], specification.get("Version", "")))
    return found


def _versions(named: set[tuple[str, str]]) -> dict[str, list[str]]:
    """Return version numbers other than $Latest and $Default, by template."""
    found: dict[str, list[str]] = {name: [] for name, _ in sorted(named)}
    for name, version in sorted(named):
        if version.isdecimal():
            found[name].append(version)
    return found


def _subnet_ids(fleets: Sequence[dict[str, Any]], groups: Sequence[dict[str, Any]]) -> list[str]:
    """Return the subnets that overrides of fleets, or groups, name; sorted."""
    configs = [
        launch_template_config
        for fleet in fleets
        for launch_template_config in fleet.get("LaunchTemplateConfigs", [])
    ]
    overrides = [override for config in configs for override in config.get("Overrides", [])]
    of_groups = {id_ for group in groups for id_ in group.get("VPCZoneIdentifier", "").split(",")}
    of_fleets = {override["SubnetId"] for override in overrides if override.get("SubnetId")}
    return sorted((of_fleets | of_groups) - {""})
