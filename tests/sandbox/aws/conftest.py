"""One emulated AWS per module, on a clock that only the test moves."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from reconciler.sandbox.aws.bootstrap import AccountIds, bootstrap_account
from reconciler.sandbox.aws.clock import ManualClock
from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

_NUMBERS = count()


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    """The time of the emulated AWS."""
    return ManualClock()


@pytest.fixture(scope="module")
def server(clock: ManualClock) -> Iterator[AwsServer]:
    """The server of this module."""
    delays = Delays(launch_seconds=30, terminate_seconds=20, modify_seconds=10, retry_seconds=60)
    with AwsServer(clock=clock, delays=delays) as running:
        yield running


@pytest.fixture
def aws(server: AwsServer) -> Iterator[AwsServer]:
    """The server, without faults or calls of an earlier test."""
    server.faults.clear()
    server.calls.clear()
    yield server
    server.faults.clear()


@pytest.fixture(scope="module")
def ids(server: AwsServer) -> AccountIds:
    """What the account has in us-west-2."""
    return bootstrap_account(server.url)


@pytest.fixture(scope="module")
def session() -> Any:
    """Dummy credentials; kept because it is what costs most in making a client."""
    return boto3.Session("test", "test", region_name="us-west-2")


@pytest.fixture
def client(aws: AwsServer, session: Any) -> Iterator[Callable[..., Any]]:
    """Makes boto3 clients that are closed after the test."""
    made: list[Any] = []

    def make(service: str, region: str = "us-west-2") -> Any:
        made.append(session.client(service, region, endpoint_url=aws.url))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def ec2(client: Callable[..., Any]) -> "EC2Client":
    """EC2 in us-west-2."""
    made: EC2Client = client("ec2")
    return made


@pytest.fixture
def template(ec2: "EC2Client", ids: AccountIds) -> str:
    """A launch template, as the eks_fleet module makes one."""
    answer = ec2.create_launch_template(
        LaunchTemplateName=f"nodes-{next(_NUMBERS)}",
        LaunchTemplateData={
            "ImageId": ids.ami,
            "UserData": "aGVsbG8=",
            "SecurityGroupIds": [ids.security_group_id],
            "TagSpecifications": [
                {"ResourceType": "instance", "Tags": [{"Key": "fleet", "Value": "primary-small"}]}
            ],
        },
    )
    return answer["LaunchTemplate"]["LaunchTemplateId"]


@pytest.fixture
def make_fleet(
    ec2: "EC2Client", ids: AccountIds, template: str, aws: AwsServer
) -> Callable[..., str]:
    """Creates fleets of type maintain with `no-termination`, over two types and all zones.

    Their first instances are launched when it returns. EC2 answers before it launches, and a test
    that moved the clock in between would have them launched later than it thinks.
    """

    def make(
        target: int,
        *,
        types: Sequence[str] = ("r5.xlarge", "m5.2xlarge"),
        default: str = "spot",
        policy: str = "no-termination",
        tags: dict[str, str] | None = None,
        **more: Any,
    ) -> str:
        overrides = [
            {"InstanceType": name, "SubnetId": subnet}
            for name in types
            for subnet in ids.subnet_ids.values()
        ]
        request: dict[str, Any] = {
            "Type": "maintain",
            "ExcessCapacityTerminationPolicy": policy,
            "LaunchTemplateConfigs": [
                {
                    "LaunchTemplateSpecification": {
                        "LaunchTemplateId": template,
                        "Version": "$Latest",
                    },
                    "Overrides": overrides,
                }
            ],
            "TargetCapacitySpecification": {
                "TotalTargetCapacity": target,
                "DefaultTargetCapacityType": default,
            },
        }
        if tags:
            pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
            request["TagSpecifications"] = [{"ResourceType": "fleet", "Tags": pairs}]
        fleet_id = ec2.create_fleet(**{**request, **more})["FleetId"]
        ControlClient(aws.url).instances()
        return fleet_id

    return make
