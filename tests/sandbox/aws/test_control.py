"""The control API: the log of calls, missing capacity, instances that die, waiting for news."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from reconciler.model.errors import InputError, Unavailable
from reconciler.sandbox.aws.bootstrap import AccountIds
from reconciler.sandbox.aws.clock import ManualClock
from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.aws.server import AwsServer

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

MakeFleet = Callable[..., str]


@pytest.fixture
def control(aws: AwsServer) -> ControlClient:
    """The control API of the module's server."""
    return ControlClient(aws.url)


def test_reading_calls_are_not_mutating(
    aws: AwsServer, ec2: "EC2Client", control: ControlClient
) -> None:
    """A dry run is proved by a log without mutating calls: a read in it would be a false alarm."""
    ec2.describe_fleets()
    ec2.describe_instances()
    assert control.call_counts() == {"ec2:DescribeFleets": 1, "ec2:DescribeInstances": 1}
    assert control.calls(mutating="true") == []
    assert aws.calls.calls(mutating=True) == ()


def test_mutating_calls_are_logged_with_time_and_parameters(
    ec2: "EC2Client", control: ControlClient, make_fleet: MakeFleet, clock: ManualClock
) -> None:
    """What was asked of EC2, and when, must be provable afterwards."""
    fleet = make_fleet(1)
    control.forget_calls()
    ec2.modify_fleet(FleetId=fleet, TargetCapacitySpecification={"TotalTargetCapacity": 2})
    (call,) = control.calls(service="ec2", mutating="true")
    assert call["action"] == "ModifyFleet"
    assert call["region"] == "us-west-2"
    assert call["status"] == 200
    assert call["at"] == clock.now().isoformat()
    assert call["parameters"]["FleetId"] == fleet
    assert call["parameters"]["TargetCapacitySpecification.TotalTargetCapacity"] == "2"


def test_refused_call_is_logged_with_its_status(ec2: "EC2Client", control: ControlClient) -> None:
    """A call that failed is not one that changed something."""
    with pytest.raises(ec2.exceptions.ClientError):
        ec2.describe_fleets(FleetIds=["fleet-00000000-0000-0000-0000-000000000000"])
    assert [call["status"] for call in control.calls()] == [400]


def test_json_and_rest_calls_are_understood(
    client: Callable[..., object], control: ControlClient
) -> None:
    """SQS speaks JSON and S3 paths; both are in the log under their own names."""
    sqs, s3 = client("sqs"), client("s3")
    sqs.create_queue(QueueName="news")  # type: ignore[attr-defined]  # boto3 builds it at run time
    s3.list_buckets()  # type: ignore[attr-defined]  # boto3 builds it at run time
    assert control.call_counts() == {"s3:GET": 1, "sqs:CreateQueue": 1}
    assert [c["action"] for c in control.calls(mutating="true")] == ["CreateQueue"]


def test_capacity_limits_come_and_go_over_http(
    ec2: "EC2Client", control: ControlClient, make_fleet: MakeFleet, clock: ManualClock
) -> None:
    """The demo makes a shortage and ends it from another process."""
    control.limit_capacity(lifecycle="spot", code="MaxSpotInstanceCountExceeded")
    fleet = make_fleet(1)
    assert ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"] == []
    control.lift_capacity(lifecycle="spot")
    clock.advance(60)
    assert len(ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"]) == 1


def test_on_demand_is_not_touched_by_a_spot_shortage(
    ec2: "EC2Client", control: ControlClient, make_fleet: MakeFleet, ids: AccountIds
) -> None:
    """Falling back to on-demand is the way out of a spot shortage; both must not fail at once."""
    control.limit_capacity(lifecycle="spot")
    fleet = make_fleet(1, default="on-demand")
    assert len(ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"]) == 1


def test_terminate_over_http_ends_instances_in_any_region(
    ec2: "EC2Client", control: ControlClient, make_fleet: MakeFleet, clock: ManualClock
) -> None:
    """A spot interruption is acted out by this call."""
    fleet = make_fleet(1)
    victim = ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"][0]["InstanceId"]
    assert control.terminate([victim, "i-unknown"], "spot-interruption") == [victim]
    left = ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"]
    assert victim not in [i["InstanceId"] for i in left]


def test_waiting_for_instances_returns_with_the_change(
    ec2: "EC2Client", control: ControlClient, make_fleet: MakeFleet
) -> None:
    """Nodes join when instances start, without asking again and again."""
    change, _ = control.instances()
    seen: list[int] = []

    def wait() -> None:
        seen.append(control.instances(since=change, wait_seconds=60)[0])

    waiter = threading.Thread(target=wait)
    waiter.start()
    fleet = make_fleet(1)
    waiter.join(60)
    assert not waiter.is_alive()
    assert seen[0] > change
    _, instances = control.instances()
    (mine,) = [i for i in instances if i["fleet_id"] == fleet]
    assert mine["state"] == "pending"
    assert mine["user_data"] == "aGVsbG8="
    assert mine["private_dns_name"].endswith(".us-west-2.compute.internal")
    assert mine["zone"].startswith("us-west-2")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.limit_capacity(colour="red"), "unknown keys colour"),
        (lambda c: c.limit_capacity(remaining="two"), "is not an integer"),
        (lambda c: c.terminate(["i-1"], "boredom"), "boredom"),
        (lambda c: c.lift_capacity(colour="red"), "unknown keys colour"),
    ],
)
def test_nonsense_is_refused_with_words(
    control: ControlClient, call: Callable[[ControlClient], object], words: str
) -> None:
    """A misspelt fault that is silently ignored makes a test pass that should not."""
    with pytest.raises(InputError, match=words):
        call(control)


def test_control_of_nothing_is_unavailable() -> None:
    """A sandbox that is gone is distinguished from one that refuses."""
    with pytest.raises(Unavailable):
        ControlClient("http://127.0.0.1:9").call_counts()
