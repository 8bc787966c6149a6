"""Shortages and deaths through boto3: what a fleet shows and does about them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reconciler.sandbox.aws.bootstrap import AccountIds
from reconciler.sandbox.aws.clock import ManualClock
from reconciler.sandbox.aws.faults.injected import CapacityLimit
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.state.launcher import EndReason
from tests.sandbox.aws.reading import described, history, members

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

MakeFleet = Callable[..., str]


def test_instance_killed_from_outside_is_replaced_and_says_why(
    aws: AwsServer, ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """A spot interruption that nobody reacts to must still end in a replacement by EC2."""
    fleet = make_fleet(1)
    (victim,) = members(ec2, fleet)
    assert aws.control.terminate([victim], EndReason.SPOT_INTERRUPTION) == (victim,)
    clock.advance(20)
    assert len(members(ec2, fleet)) == 1
    found = ec2.describe_instances(InstanceIds=[victim])["Reservations"][0]["Instances"][0]
    assert found["State"]["Name"] == "terminated"
    assert found["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    assert ("instanceChange", "terminated") in history(ec2, fleet)


def test_missing_capacity_shows_as_error_and_moves_to_other_pools(
    aws: AwsServer, ec2: "EC2Client", make_fleet: MakeFleet
) -> None:
    """A fleet that stops at its first dry pool would make every shortage a total one."""
    aws.faults.limit(CapacityLimit(instance_type="r5.xlarge"))
    fleet = make_fleet(2)
    kinds = {
        i["InstanceType"] for i in ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"]
    }
    assert kinds == {"m5.2xlarge"}
    assert described(ec2, fleet)["ActivityStatus"] == "fulfilled"
    assert ("error", "InsufficientInstanceCapacity") in history(ec2, fleet)
    records = ec2.describe_fleet_history(FleetId=fleet, StartTime="1970-01-01T00:00:00Z")
    words = [r["EventInformation"].get("EventDescription", "") for r in records["HistoryRecords"]]
    assert any("There is no Spot capacity available" in text for text in words)
    assert any("Error Code: InsufficientInstanceCapacity" in text for text in words)


def test_no_capacity_anywhere_is_activity_status_error_until_it_returns(
    aws: AwsServer, ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """The fleet must look unavailable while it is, and recover by itself."""
    aws.faults.limit(CapacityLimit(code="MaxSpotInstanceCountExceeded", lifecycle="spot"))
    fleet = make_fleet(2)
    assert described(ec2, fleet)["ActivityStatus"] == "error"
    assert described(ec2, fleet)["FulfilledCapacity"] == 0
    errors = history(ec2, fleet, EventType="service-error")
    assert ("error", "spotInstanceCountLimitExceeded") in errors
    assert errors[-1] == ("error", "allLaunchSpecsTemporarilyBlacklisted")
    aws.faults.clear()
    assert described(ec2, fleet)["FulfilledCapacity"] == 0
    clock.advance(60)
    assert described(ec2, fleet)["ActivityStatus"] == "fulfilled"
    assert len(members(ec2, fleet)) == 2


def test_limited_capacity_gives_what_is_left(
    aws: AwsServer, ec2: "EC2Client", make_fleet: MakeFleet
) -> None:
    """Partial fulfilment is the usual case in a shortage: some nodes come, the rest never."""
    aws.faults.limit(CapacityLimit(remaining=2))
    fleet = make_fleet(5)
    assert described(ec2, fleet)["FulfilledCapacity"] == 2
    assert described(ec2, fleet)["ActivityStatus"] == "error"


def test_instant_fleet_answers_with_instances_and_errors(
    aws: AwsServer, ec2: "EC2Client", make_fleet: MakeFleet, ids: AccountIds, template: str
) -> None:
    """An instant fleet says at once what it got, and is listed only when named."""
    zone = next(iter(ids.subnet_ids))
    aws.faults.limit(CapacityLimit(zone=zone, remaining=1))
    config: Any = {
        "LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "1"},
        "Overrides": [{"InstanceType": "r5.large", "SubnetId": ids.subnet_ids[zone]}],
    }
    answer = ec2.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[config],
        TargetCapacitySpecification={
            "TotalTargetCapacity": 2,
            "DefaultTargetCapacityType": "on-demand",
        },
    )
    assert len(answer["Instances"]) == 1
    assert answer["Errors"][0]["ErrorCode"] == "InsufficientInstanceCapacity"
    assert answer["FleetId"] not in [f["FleetId"] for f in ec2.describe_fleets()["Fleets"]]
    assert described(ec2, answer["FleetId"])["Type"] == "instant"
