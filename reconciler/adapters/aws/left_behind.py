"""What an apply that was cut off made in EC2 and could not write down."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.errors import translated
from reconciler.adapters.aws.reading import chunks
from reconciler.model.ids import Region

LIVE_STATES = {"active", "modifying", "submitted"}
NAMES_MAX = 100
"""DescribeLaunchTemplates takes filters of up to 200 values (EC2 reference, read 2026-08)."""
Made = Mapping[str, Mapping[str, str]]
"""Ids by Terraform type, by fleet name."""


def read_left_behind(cluster: str, region: Region, names: Sequence[str]) -> Made:
    """Fleets and launch templates of a cluster that exist under these fleets' names.

    Rights: ec2:DescribeFleets, ec2:DescribeLaunchTemplates.

    Raises:
        PortError: EC2 did not answer, or may not be asked.
    """
    found: dict[str, dict[str, str]] = {}
    with closing(Clients()) as clients:
        ec2 = clients.ec2(region)
        for fleet in _pages(ec2, "describe_fleets", "Fleets", {}):
            name = _ours(fleet, cluster, names)
            if name and fleet.get("FleetState") in LIVE_STATES and fleet.get("Type") == "maintain":
                found.setdefault(name, {})["aws_ec2_fleet"] = fleet["FleetId"]
        for chunk in chunks(sorted(names), NAMES_MAX):
            wanted = [f"{cluster}-{name}" for name in chunk]
            filters = [{"Name": "launch-template-name", "Values": wanted}]
            arguments = {"Filters": filters}
            for template in _pages(ec2, "describe_launch_templates", "LaunchTemplates", arguments):
                name = _ours(template, cluster, names)
                if name and template["LaunchTemplateName"] == f"{cluster}-{name}":
                    found.setdefault(name, {})["aws_launch_template"] = template["LaunchTemplateId"]
    return found


def _ours(entry: Mapping[str, Any], cluster: str, names: Sequence[str]) -> str:
    """The fleet that its tags name, when it is one of the cluster's that are looked for."""
    tags = {tag["Key"]: tag["Value"] for tag in entry.get("Tags", [])}
    name = str(tags.get("fleet", ""))
    return name if tags.get("cluster") == cluster and name in names else ""


def _pages(
    client: Any, operation: str, key: str, arguments: dict[str, Any]
) -> list[dict[str, Any]]:
    with translated(operation, changing=False):
        pages = client.get_paginator(operation).paginate(**arguments)
        return [each for page in pages for each in page.get(key, [])]
