"""What DescribeInstances says again of instances that it described before."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from reconciler.sandbox.aws.clock import ManualClock
from tests.sandbox.aws.reading import members

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

pytestmark = pytest.mark.sandbox


def instances(ec2: "EC2Client", fleet: str) -> dict[str, Any]:
    """All that EC2 says of the fleet's instances, by id."""
    answer = ec2.describe_instances(Filters=[{"Name": "tag:aws:ec2:fleet-id", "Values": [fleet]}])
    found = answer["Reservations"]
    return {i["InstanceId"]: i for reservation in found for i in reservation["Instances"]}


def test_second_answer_says_the_same_and_what_time_changed(
    ec2: "EC2Client", make_fleet: Callable[..., str], clock: ManualClock
) -> None:
    """An instance that stays pending for ever would be ended as one that never joins."""
    fleet = make_fleet(2)
    first = instances(ec2, fleet)
    assert {i["State"]["Name"] for i in first.values()} == {"pending"}
    assert instances(ec2, fleet) == first
    clock.advance(60)
    running = instances(ec2, fleet)
    assert {i["State"]["Name"] for i in running.values()} == {"running"}
    for each in (*first.values(), *running.values()):
        del each["State"]
    assert running == first


def test_what_other_calls_change_is_said(ec2: "EC2Client", make_fleet: Callable[..., str]) -> None:
    """Tags and attributes set by hand would not show."""
    fleet = make_fleet(2)
    changed, other = sorted(instances(ec2, fleet))
    ec2.create_tags(Resources=[changed], Tags=[{"Key": "owner", "Value": "data"}])
    ec2.modify_instance_attribute(InstanceId=changed, SourceDestCheck={"Value": False})
    found = instances(ec2, fleet)
    assert {"Key": "owner", "Value": "data"} in found[changed]["Tags"]
    assert [found[each]["SourceDestCheck"] for each in (changed, other)] == [False, True]


def test_ended_instance_is_said_to_end(
    ec2: "EC2Client", make_fleet: Callable[..., str], clock: ManualClock
) -> None:
    """Its node would be taken for one that is alive."""
    fleet = make_fleet(2)
    ended, other = sorted(instances(ec2, fleet))
    clock.advance(60)
    ec2.terminate_instances(InstanceIds=[ended])
    shown = {i: each["State"]["Name"] for i, each in instances(ec2, fleet).items()}
    assert (shown[ended], shown[other]) == ("shutting-down", "running")
    clock.advance(60)
    assert instances(ec2, fleet)[ended]["State"]["Name"] == "terminated"
    assert ended not in members(ec2, fleet)
