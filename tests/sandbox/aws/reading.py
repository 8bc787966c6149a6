"""How tests read and steer a fleet through boto3."""

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client


def members(ec2: "EC2Client", fleet: str) -> list[str]:
    """Ids of the fleet's active instances."""
    return [i["InstanceId"] for i in ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"]]


def described(ec2: "EC2Client", fleet: str) -> Any:
    """The fleet as DescribeFleets answers it."""
    return ec2.describe_fleets(FleetIds=[fleet])["Fleets"][0]


def states(ec2: "EC2Client", fleet: str) -> dict[str, str]:
    """State of every instance that carries the fleet's tag, by id."""
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "tag:aws:ec2:fleet-id", "Values": [fleet]}]
    )
    return {
        i["InstanceId"]: i["State"]["Name"]
        for page in pages
        for reservation in page["Reservations"]
        for i in reservation["Instances"]
    }


def history(ec2: "EC2Client", fleet: str, **wanted: Any) -> list[tuple[str, str]]:
    """Type and sub-type of the fleet's records."""
    answer = ec2.describe_fleet_history(FleetId=fleet, StartTime="1970-01-01T00:00:00Z", **wanted)
    return [
        (r["EventType"], r["EventInformation"]["EventSubType"]) for r in answer["HistoryRecords"]
    ]


def set_target(ec2: "EC2Client", fleet: str, target: int, **more: Any) -> None:
    """ModifyFleet to a new total."""
    ec2.modify_fleet(
        FleetId=fleet, TargetCapacitySpecification={"TotalTargetCapacity": target}, **more
    )


def error_code(caught: pytest.ExceptionInfo[ClientError]) -> str:
    """EC2's code of a refusal."""
    return str(caught.value.response["Error"]["Code"])
