"""Finds what an interrupted apply created in EC2 without recording it in the state."""

from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.paging import chunks, entries
from reconciler.model.ids import Region

LIVE_STATES = {"active", "modifying", "submitted"}
NAMES_MAX = 100
"""DescribeLaunchTemplates takes filters of up to 200 values (EC2 reference, read 2026-08)."""
Made = Mapping[str, Mapping[str, str]]
"""Ids by Terraform type, by fleet name."""


def read_left_behind(
    cluster: str, region: Region, names: Mapping[str, str], groups: Mapping[str, str]
) -> Made:
    """Return a cluster's EC2 Fleets, groups and launch templates with these fleets' names.

    Args:
        cluster: Value of the tag `cluster`.
        region: Where they are.
        names: EC2 Fleets, each with the name of its launch template; empty: that is not looked for.
        groups: The same for Auto Scaling groups.

    Rights: ec2:DescribeFleets, ec2:DescribeLaunchTemplates; with names of groups
    autoscaling:DescribeAutoScalingGroups.

    Raises:
        PortError: EC2 did not answer, or denies access.
    """
    found: dict[str, dict[str, str]] = {}
    with closing(Clients()) as clients:
        ec2 = clients.ec2(region)
        for fleet in entries(ec2, "describe_fleets", "Fleets", {}) if names else ():
            name = _own_fleet(fleet, cluster, names)
            if name and fleet.get("FleetState") in LIVE_STATES and fleet.get("Type") == "maintain":
                found.setdefault(name, {})["aws_ec2_fleet"] = fleet["FleetId"]
        for group in _groups(clients, region, cluster) if groups else ():
            name = _own_fleet(group, cluster, groups)
            if name and not group.get("Status"):  # it keeps its tags while it is deleted
                found.setdefault(name, {})["aws_autoscaling_group"] = group["AutoScalingGroupName"]
        templates = {template: name for name, template in {**names, **groups}.items() if template}
        for chunk in chunks(sorted(templates), NAMES_MAX):
            filters = [{"Name": "launch-template-name", "Values": chunk}]
            arguments = {"Filters": filters}
            for template in entries(ec2, "describe_launch_templates", "LaunchTemplates", arguments):
                name = templates.get(template["LaunchTemplateName"], "")
                if name and _own_fleet(template, cluster, [name]):
                    found.setdefault(name, {})["aws_launch_template"] = template["LaunchTemplateId"]
    return found


def _groups(clients: Clients, region: Region, cluster: str) -> list[dict[str, Any]]:
    """Return the Auto Scaling groups with the cluster's tag."""
    arguments = {"Filters": [{"Name": "tag:cluster", "Values": [cluster]}]}
    auto_scaling = clients.autoscaling(region)
    return entries(auto_scaling, "describe_auto_scaling_groups", "AutoScalingGroups", arguments)


def _own_fleet(entry: Mapping[str, Any], cluster: str, names: Collection[str]) -> str:
    """Return the fleet in its tags; empty unless it is one of these names and the cluster's."""
    tags = {tag["Key"]: tag["Value"] for tag in entry.get("Tags", [])}
    name = str(tags.get("fleet", ""))
    return name if tags.get("cluster") == cluster and name in names else ""
