"""What adopting a cluster's fleets and groups needs to see of one region."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.errors import translated
from reconciler.adapters.aws.reading import chunks
from reconciler.model.errors import Forbidden
from reconciler.model.ids import Region
from reconciler.records.aws import Answer

IDS_MAX = 200
VERSIONS = ["$Latest", "$Default"]


def read_adoptable(region: Region) -> tuple[list[Answer], tuple[str, ...]]:
    """Fleets, their launch templates and subnets, and Auto Scaling groups; and what is missing.

    Rights: ec2:DescribeFleets, ec2:DescribeLaunchTemplateVersions, ec2:DescribeSubnets,
    autoscaling:DescribeAutoScalingGroups. Without the last a cluster of fleets is still described.

    Raises:
        PortError: EC2 or Auto Scaling did not answer, or EC2 may not be asked.
    """
    missing: list[str] = []
    with closing(Clients()) as clients:
        ec2 = clients.ec2(region)
        fleets = _pages(ec2, "describe_fleets", "Fleets", {})
        answers: list[Answer] = [{"Fleets": fleets}]
        try:
            auto_scaling, operation = clients.autoscaling(region), "describe_auto_scaling_groups"
            groups = _pages(auto_scaling, operation, "AutoScalingGroups", {})
            answers.append({"AutoScalingGroups": groups})
        except Forbidden as error:
            missing.append(f"Auto Scaling groups, of which nothing was read: {error.what}")
        for template_id in _ids(fleets, "LaunchTemplateId"):
            arguments = {"LaunchTemplateId": template_id, "Versions": VERSIONS}
            operation, key = "describe_launch_template_versions", "LaunchTemplateVersions"
            answers.append({key: _pages(ec2, operation, key, arguments)})
        for chunk in chunks(_ids(fleets, "SubnetId"), IDS_MAX):
            filters = [{"Name": "subnet-id", "Values": chunk}]
            found = _pages(ec2, "describe_subnets", "Subnets", {"Filters": filters})
            answers.append({"Subnets": found})
    return answers, tuple(missing)


def _ids(fleets: Sequence[dict[str, Any]], key: str) -> list[str]:
    """Ids of launch templates or subnets that fleets refer to, sorted."""
    found = set()
    for fleet in fleets:
        for config in fleet.get("LaunchTemplateConfigs", []):
            found.add(config.get("LaunchTemplateSpecification", {}).get(key))
            found |= {override.get(key) for override in config.get("Overrides", [])}
    return sorted(filter(None, found))


def _pages(
    client: Any, operation: str, key: str, arguments: dict[str, Any]
) -> list[dict[str, Any]]:
    with translated(operation, changing=False):
        pages = client.get_paginator(operation).paginate(**arguments)
        return [each for page in pages for each in page.get(key, [])]
