"""What failed launches of an Auto Scaling group say in its scaling activities."""

import pytest

from reconciler.model.ids import Region
from reconciler.records.aws import decode_cloud
from tests.unit.records.aws.aws_answers import STAMP, Json, group_json

HOME = Region("us-west-2")


def failed_launch(words: str) -> Json:
    """A failed launch of the group, as its scaling activities show it."""
    return {
        "AutoScalingGroupName": "workers",
        "StatusCode": "Failed",
        "StartTime": STAMP,
        "Description": "Launching a new EC2 instance",
        "StatusMessage": words,
    }


@pytest.mark.parametrize(
    ("words", "code", "kept"),
    [
        (
            "The image id '[ami-0abc]' does not exist. Launching EC2 instance failed.",
            "",
            "The image id '[ami-0abc]' does not exist. Launching EC2 instance failed.",
        ),
        (
            "You have requested more vCPU capacity than your current vCPU limit of 64 allows",
            "",
            "You have requested more vCPU capacity than your current vCPU limit of 64 allows",
        ),
        (
            f"You are not authorized.  Encoded authorization failure message: {'x' * 900}.\nSorry.",
            "",
            "You are not authorized. Sorry.",
        ),
        ("UnfulfillableCapacity - AKIAABCDEFGHIJKLMNOP", "UnfulfillableCapacity", None),
        ("no " * 900, "", "no " * 99 + "no…"),
    ],
    ids=["image", "quota", "rights", "secret", "long"],
)
def test_words_of_a_failed_activity_stay_and_no_code_is_made_up(
    words: str, code: str, kept: str | None
) -> None:
    """The cause was `Failed`, or a lack of capacity that AWS had not spoken of."""
    answers = {"AutoScalingGroups": [group_json()]}, {"Activities": [failed_launch(words)]}
    (fleet,) = decode_cloud([(HOME, answer) for answer in answers], cluster="analytics").fleets
    (event,) = fleet.launch_errors
    assert event.code == code
    assert event.message == (kept or "UnfulfillableCapacity - ***")
