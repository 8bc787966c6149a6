"""What moto would search for among all that it has, and is looked up: the same answers."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from moto.ec2.models import ec2_backends

from reconciler.sandbox.aws.bootstrap import AccountIds
from reconciler.sandbox.aws.clock import ManualClock
from reconciler.sandbox.aws.server import AwsServer
from tests.sandbox.aws.reading import members

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

pytestmark = pytest.mark.sandbox


@pytest.fixture
def walks(aws: AwsServer, make_fleet: Callable[..., str]) -> Iterator[list[str]]:
    """The walks over all instances that moto takes in the test."""
    make_fleet(0)
    with aws.world.turn():
        places = list(aws.world.regions())
    assert places
    walked: list[str] = []
    backends: list[Any] = [ec2_backends[account][name] for account, name in places]
    for backend in backends:
        backend.all_reservations = noted(backend.all_reservations, walked)
    yield walked
    for backend in backends:
        del backend.all_reservations


def noted(walk: Callable[..., Any], walked: list[str]) -> Callable[..., Any]:
    """The same walk, noted."""

    def walking(*arguments: Any, **named: Any) -> Any:
        walked.append(walk.__name__)
        return walk(*arguments, **named)

    return walking


def test_launch_looks_at_no_other_instance(
    make_fleet: Callable[..., str], walks: list[str], clock: ManualClock, aws: AwsServer
) -> None:
    """190 launches among 1,000 instances would hold up every other call for seconds."""
    make_fleet(3)
    clock.advance(60)
    with aws.world.turn():
        (instances,) = [region.instances() for region in aws.world.regions().values()]
        assert len(instances) >= 3
        assert not walks


def test_instance_that_is_not_there_is_refused_as_ever(ec2: "EC2Client") -> None:
    """A lookup that finds nothing must not answer nothing."""
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        ec2.modify_instance_attribute(
            InstanceId="i-0123456789abcdef0", SourceDestCheck={"Value": False}
        )


def test_images_are_found_by_id_and_by_pattern(ec2: "EC2Client", ids: AccountIds) -> None:
    """Only whole ids are looked up; patterns are moto's to match."""
    for wanted, found in ((ids.ami, True), (f"{ids.ami[:-2]}*", True), ("ami-none", False)):
        images = ec2.describe_images(Filters=[{"Name": "image-id", "Values": [wanted]}])["Images"]
        assert (ids.ami in [image["ImageId"] for image in images]) is found


def test_launched_instance_carries_what_its_image_says(
    ec2: "EC2Client", make_fleet: Callable[..., str], ids: AccountIds
) -> None:
    """An image that is not found would leave the instance with moto's own defaults."""
    fleet = make_fleet(1)
    (image,) = ec2.describe_images(ImageIds=[ids.ami])["Images"]
    (instance,) = members(ec2, fleet)
    answer = ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
    assert answer["VirtualizationType"] == image["VirtualizationType"]
    assert answer["Architecture"] == image["Architecture"]
