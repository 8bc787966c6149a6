"""Faults of a script through boto3: what a client of the emulated AWS meets, and when no more."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from reconciler.model.errors import InputError
from reconciler.sandbox.aws.clock import ManualClock
from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.faults.aws import AwsFaults
from tests.sandbox.aws.reading import described, history, members, set_target, states

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

MakeFleet = Callable[..., str]
Put = Callable[..., None]
FLEET_TAGS = {"fleet": "primary-small"}


@pytest.fixture
def put(aws: AwsServer) -> Put:
    """Puts faults in force as another process would: over HTTP, in the words of a script."""
    control = ControlClient(aws.url)

    def send(seed: int = 0, **part: Any) -> None:
        control.put_faults(AwsFaults.model_validate(part), seed)

    return send


@pytest.fixture
def once(aws: AwsServer, session: Any) -> Iterator["EC2Client"]:
    """EC2 without retries: each call is one request."""
    config = Config(retries={"total_max_attempts": 1})
    client = session.client("ec2", endpoint_url=aws.url, config=config)
    yield client
    client.close()


def code_of(call: Callable[[], Any]) -> tuple[str, int]:
    """The error code and HTTP status of a call that is refused."""
    with pytest.raises(ClientError) as caught:
        call()
    answer: Any = caught.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def target(ec2: "EC2Client", fleet: str) -> int:
    """The fleet's target as EC2 shows it."""
    return int(described(ec2, fleet)["TargetCapacitySpecification"]["TotalTargetCapacity"])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("InternalError", 500),
        ("Unavailable", 503),
        ("RequestLimitExceeded", 503),
        ("UnauthorizedOperation", 403),
        ("InvalidInstanceID.NotFound", 400),
    ],
)
def test_error_shows_with_its_status_as_often_as_counted(
    put: Put, once: "EC2Client", make_fleet: MakeFleet, code: str, status: int
) -> None:
    """A status that is not AWS's own would exercise another branch of every client."""
    fleet = make_fleet(1)
    put(calls=[{"fault": "error", "actions": "ModifyFleet", "code": code, "after": 1, "count": 1}])
    set_target(once, fleet, 2)
    assert code_of(lambda: set_target(once, fleet, 3)) == (code, status)
    assert target(once, fleet) == 2
    set_target(once, fleet, 3)
    assert target(once, fleet) == 3


def test_lost_reply_is_carried_out_and_no_answer_is_not(
    put: Put, once: "EC2Client", make_fleet: MakeFleet, aws: AwsServer
) -> None:
    """The two look the same to a client: only looking again tells them apart."""
    fleet = make_fleet(1)
    put(calls=[{"fault": "lost-reply", "actions": "ModifyFleet", "count": 1}])
    with pytest.raises(ConnectionClosedError):
        set_target(once, fleet, 4)
    assert target(once, fleet) == 4
    put(calls=[{"fault": "no-answer", "actions": "ModifyFleet", "count": 1}])
    with pytest.raises(ConnectionClosedError):
        set_target(once, fleet, 5)
    assert target(once, fleet) == 4
    met = [(call.fault, call.status) for call in aws.calls.calls(action="ModifyFleet")]
    assert met == [("lost-reply", 0), ("no-answer", 0)]


def test_stale_answer_shows_fleets_and_instances_as_they_were(
    put: Put, ec2: "EC2Client", make_fleet: MakeFleet, clock: ManualClock
) -> None:
    """EC2 is eventually consistent: what was just launched is missing, what ended still runs."""
    fleet = make_fleet(1)
    states(ec2, fleet)  # the launch begins now, not with the first request a second later
    clock.advance(60)
    (first,) = members(ec2, fleet)
    assert states(ec2, fleet) == {first: "running"}
    put(
        calls=[{"fault": "stale", "actions": ["DescribeFleets", "DescribeInstances"], "age": "10s"}]
    )
    clock.advance(5)
    set_target(ec2, fleet, 3)
    ec2.terminate_instances(InstanceIds=[first])
    clock.advance(4)

    assert (target(ec2, fleet), states(ec2, fleet)) == (1, {first: "running"})
    assert len(members(ec2, fleet)) == 3
    clock.advance(10)
    assert target(ec2, fleet) == 3
    assert states(ec2, fleet)[first] == "shutting-down"
    assert len(states(ec2, fleet)) == 4


def test_throttling_refuses_what_exceeds_the_documented_bucket(
    put: Put, once: "EC2Client", make_fleet: MakeFleet, clock: ManualClock
) -> None:
    """ModifyFleet: 50 at once, then 5 per second; a guess would hide or invent throttling."""
    fleet = make_fleet(0)
    put(throttling={})
    for _ in range(50):
        set_target(once, fleet, 0)
    assert code_of(lambda: set_target(once, fleet, 0)) == ("RequestLimitExceeded", 503)
    once.describe_fleets()
    clock.advance(1)
    for _ in range(5):
        set_target(once, fleet, 0)
    assert code_of(lambda: set_target(once, fleet, 0)) == ("RequestLimitExceeded", 503)


def test_instances_have_a_bucket_of_their_own(
    put: Put, once: "EC2Client", make_fleet: MakeFleet, clock: ManualClock
) -> None:
    """TerminateInstances is throttled by instances too: a few large calls run into it."""
    fleet = make_fleet(4)
    put(throttling={"resources": {"TerminateInstances": {"capacity": 3, "per_second": 1}}})
    ids = members(once, fleet)
    once.terminate_instances(InstanceIds=ids[:2])
    rest = ids[2:4]
    assert code_of(lambda: once.terminate_instances(InstanceIds=rest))[0] == "RequestLimitExceeded"
    clock.advance(1)
    once.terminate_instances(InstanceIds=rest)


def test_vanished_instance_is_forbidden_to_those_whose_rights_hang_on_tags(
    put: Put, once: "EC2Client", make_fleet: MakeFleet, clock: ManualClock
) -> None:
    """An instance that is gone has no tags: EC2 answers 403 for it, and refuses the whole call."""
    fleet = make_fleet(2)
    gone, living = members(once, fleet)[:2]
    once.terminate_instances(InstanceIds=[gone])
    clock.advance(20)
    fault = {"fault": "error", "actions": "TerminateInstances", "code": "UnauthorizedOperation"}
    put(calls=[{**fault, "vanished": True}])
    both = [gone, living]
    refused = code_of(lambda: once.terminate_instances(InstanceIds=both))
    assert refused == ("UnauthorizedOperation", 403)
    once.terminate_instances(InstanceIds=[living])


def test_capacity_fault_of_one_fleet_leaves_others_their_pools(
    put: Put, ec2: "EC2Client", make_fleet: MakeFleet, clock: ManualClock
) -> None:
    """A shortage that hits every fleet at once cannot show that demand moves on."""
    put(
        capacity=[
            {"fleet": "primary-small", "code": "MaxSpotInstanceCountExceeded", "until": "90s"}
        ]
    )
    short, other = make_fleet(1, tags=FLEET_TAGS), make_fleet(1, tags={"fleet": "primary-large"})
    assert described(ec2, short)["ActivityStatus"] == "error"
    assert ("error", "spotInstanceCountLimitExceeded") in history(ec2, short)
    assert len(members(ec2, other)) == 1
    clock.advance(59)
    assert members(ec2, short) == []
    clock.advance(61)
    assert len(members(ec2, short)) == 1


def test_capacity_that_remains_is_given_first(
    put: Put, ec2: "EC2Client", make_fleet: MakeFleet
) -> None:
    """Half of what was asked for is the usual answer in a shortage."""
    put(capacity=[{"fleet": "primary-small", "remaining": 2}])
    assert len(members(ec2, make_fleet(5, tags=FLEET_TAGS))) == 2


def test_launch_delays_are_drawn_from_the_seed(
    put: Put, ec2: "EC2Client", make_fleet: MakeFleet, clock: ManualClock, aws: AwsServer
) -> None:
    """Two runs of one script must meet the same launches, or no failure can be looked into."""

    def running_by_second() -> list[int]:
        aws.faults.clear()
        put(
            seed=3,
            launches=[
                {
                    "fleet": "drawn",
                    "delay": {"min": 5, "max": 25, "distribution": "exponential"},
                }
            ],
        )
        fleet = make_fleet(6, tags={"fleet": "drawn"})
        states(ec2, fleet)  # the launches begin now, not with the first request a second later
        seen = []
        for _ in range(26):
            clock.advance(1)
            seen.append(list(states(ec2, fleet).values()).count("running"))
        return seen

    first = running_by_second()
    assert running_by_second() == first
    assert (first[3], first[-1]) == (0, 6)
    assert len(set(first)) > 3


def test_instance_that_never_joins_says_so_to_the_joiner_alone(
    put: Put, ec2: "EC2Client", make_fleet: MakeFleet, aws: AwsServer
) -> None:
    """EC2 shows nothing of it: an instance runs, and no node comes."""
    put(launches=[{"joins": False, "count": 1}])
    fleet = make_fleet(2)
    assert set(states(ec2, fleet).values()) == {"pending"}
    _, facts = ControlClient(aws.url).instances()
    joins = [fact["joins"] for fact in facts if fact["fleet_id"] == fleet]
    assert sorted(joins) == [False, True]


def test_modifying_lasts_and_refuses_as_set(
    put: Put, once: "EC2Client", make_fleet: MakeFleet, clock: ManualClock
) -> None:
    """A fleet that is busy for minutes must be seen as such, and take the next change later."""
    fleet = make_fleet(1)
    put(modifying=[{"lasts": "50s", "refuse": True, "count": 1}])
    set_target(once, fleet, 2)
    clock.advance(49)
    assert described(once, fleet)["FleetState"] == "modifying"
    refused = code_of(lambda: set_target(once, fleet, 3))
    assert refused == ("FleetNotInModifiableState", 400)
    clock.advance(1)
    set_target(once, fleet, 3)
    assert target(once, fleet) == 3


def test_spot_interruption_is_announced_and_then_done(
    put: Put,
    ec2: "EC2Client",
    make_fleet: MakeFleet,
    clock: ManualClock,
    client: Callable[..., Any],
    aws: AwsServer,
) -> None:
    """The notice comes two minutes ahead, as an event where someone subscribed to it."""
    sqs, events = client("sqs"), client("events")
    url = sqs.create_queue(QueueName="notices")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    pattern = {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}
    events.put_rule(Name="spot", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="spot", Targets=[{"Id": "queue", "Arn": arn["QueueArn"]}])
    put(interruptions=[{"fleet": "taken", "from": "45s", "count": 1, "notice": "2m"}])
    fleet = make_fleet(2, tags={"fleet": "taken"})
    # An instance starts at the moment at which it is seen to be due, so this takes two steps.
    clock.advance(30)
    assert len(members(ec2, fleet)) == 2
    clock.advance(14)
    before = members(ec2, fleet)
    _, facts = ControlClient(aws.url).instances()
    assert [fact["interrupted_at"] for fact in facts if fact["fleet_id"] == fleet] == [None] * 2
    clock.advance(1)
    ec2.describe_fleets()
    _, facts = ControlClient(aws.url).instances()
    mine = [fact for fact in facts if fact["fleet_id"] == fleet]
    (victim,) = [each["instance_id"] for each in mine if each["interrupted_at"]]
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    event = json.loads(message["Body"])
    assert event["detail-type"] == "EC2 Spot Instance Interruption Warning"
    assert event["detail"] == {"instance-id": victim, "instance-action": "terminate"}
    clock.advance(119)
    assert victim in members(ec2, fleet)
    clock.advance(1)
    assert victim not in members(ec2, fleet)
    assert len(set(members(ec2, fleet)) - set(before)) == 1


def test_interruption_over_http_takes_the_named_instances(
    ec2: "EC2Client", make_fleet: MakeFleet, clock: ManualClock, aws: AwsServer
) -> None:
    """A test or a demonstration chooses whom EC2 takes back."""
    fleet = make_fleet(1)
    clock.advance(30)
    (victim,) = members(ec2, fleet)
    ControlClient(aws.url).interrupt([victim, "i-unknown"], notice_seconds=10)
    clock.advance(10)
    assert victim not in members(ec2, fleet)


def test_faults_in_force_say_how_often_they_have_shown(
    put: Put, once: "EC2Client", aws: AwsServer
) -> None:
    """A test that never met its fault proves nothing."""
    put(
        calls=[
            {"fault": "error", "code": "InternalError", "actions": "DescribeFleets", "until": 9},
            {"fault": "delay", "delay": 60, "service": "sqs"},
        ]
    )
    code_of(once.describe_fleets)
    code_of(once.describe_fleets)
    control = ControlClient(aws.url)
    assert [call["shown"] for call in control.faults()["calls"]] == [2, 0]
    control.clear_faults()
    once.describe_fleets()
    assert control.faults()["calls"] == []


def test_probability_is_drawn_with_the_seed(put: Put, once: "EC2Client", aws: AwsServer) -> None:
    """A share of calls fails, and the same ones whenever the script is run."""

    def run() -> list[bool]:
        aws.faults.clear()
        fault = {"fault": "error", "code": "Unavailable", "actions": "DescribeFleets"}
        put(seed=5, calls=[{**fault, "probability": 0.5}])
        aws.calls.clear()
        for _ in range(40):
            try:
                once.describe_fleets()
            except ClientError:
                continue
        return [bool(call.fault) for call in aws.calls.calls(action="DescribeFleets")]

    first = run()
    assert 10 < sum(first) < 30
    assert run() == first


@pytest.mark.parametrize(
    ("service", "call", "action"),
    [
        ("autoscaling", "describe_auto_scaling_groups", "DescribeAutoScalingGroups"),
        ("sqs", "list_queues", "ListQueues"),
        ("s3", "list_buckets", "GET"),
        ("sts", "get_caller_identity", "GetCallerIdentity"),
    ],
)
def test_error_is_understood_in_each_services_own_protocol(
    put: Put, aws: AwsServer, session: Any, service: str, call: str, action: str
) -> None:
    """An error that a client cannot read is a crash of the client, not the fault that was meant."""
    fault = {"fault": "error", "code": "ServiceUnavailable", "service": service}
    put(calls=[{**fault, "actions": action}])
    config = Config(retries={"total_max_attempts": 1})
    made = session.client(service, endpoint_url=aws.url, config=config)
    assert code_of(getattr(made, call)) == ("ServiceUnavailable", 503)
    aws.faults.clear()
    getattr(made, call)()
    made.close()


def test_sandboxs_own_clients_meet_no_faults(put: Put, aws: AwsServer) -> None:
    """Faults are for the program under test: a joiner that fails would fail the wrong thing."""
    put(calls=[{"fault": "error", "code": "InternalError"}])
    session: Any = boto3.Session("test", "test", region_name="us-west-2")
    own = session.client(
        "ec2", endpoint_url=aws.url, config=Config(user_agent_extra="sandbox-joiner")
    )
    assert own.describe_fleets()["Fleets"] is not None
    own.close()


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"calls": [{"fault": "error"}]}, "`error` needs `code`"),
        ({"colour": []}, "colour"),
        ({"seed": "x"}, "is not a whole number"),
    ],
)
def test_nonsense_is_refused_with_its_place(
    aws: AwsServer, part: dict[str, Any], words: str
) -> None:
    """A misspelt fault that is silently ignored makes a test pass that should not."""
    control = ControlClient(aws.url)
    with pytest.raises(InputError, match=words):
        control._ask("POST", "faults", body=part)
