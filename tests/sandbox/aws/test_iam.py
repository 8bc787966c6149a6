"""IAM decisions about tags: what the shipped policies rest on."""

from collections.abc import Mapping

import pytest

from reconciler.sandbox.aws.iam import Subject, is_allowed, subjects_of

FLEET = "arn:aws:ec2:us-west-2:123456789012:fleet/fleet-1"


def allowing(action: str, resource: str = "*", **condition: Mapping[str, str]) -> dict[str, object]:
    """A policy of one statement."""
    statement = {"Effect": "Allow", "Action": action, "Resource": resource, "Condition": condition}
    return {"Statement": [statement]}


OURS = {"aws:ResourceTag/cluster": "analytics"}


@pytest.mark.parametrize(
    ("policy", "context", "allowed"),
    [
        (allowing("ec2:ModifyFleet"), {}, True),
        (allowing("ec2:Modify*"), {}, True),
        (allowing("EC2:modifyfleet"), {}, True),
        (allowing("ec2:DescribeFleets"), {}, False),
        (allowing("ec2:ModifyFleet", "arn:aws:ec2:*:*:fleet/*"), {}, True),
        (allowing("ec2:ModifyFleet", "arn:aws:ec2:*:*:instance/*"), {}, False),
        (allowing("ec2:ModifyFleet", StringEquals=OURS), OURS, True),
        (allowing("ec2:ModifyFleet", StringEquals=OURS), {}, False),
        (
            allowing("ec2:ModifyFleet", StringEquals=OURS),
            {"aws:ResourceTag/cluster": "other"},
            False,
        ),
        (allowing("ec2:ModifyFleet", StringEqualsIfExists=OURS), {}, True),
        (
            allowing("ec2:ModifyFleet", StringLike={"aws:ResourceTag/cluster": "ana*"}),
            OURS,
            True,
        ),
        (allowing("ec2:ModifyFleet", NumericEquals=OURS), OURS, False),
    ],
)
def test_decision(policy: Mapping[str, object], context: Mapping[str, str], allowed: bool) -> None:
    """A policy that is proven by a wrong decision fails on AWS, or allows too much there."""
    subject = Subject(arn=FLEET, context=context)
    assert is_allowed([policy], "ec2:ModifyFleet", [subject]) is allowed


def test_deny_beats_allow() -> None:
    """An organisation's guard rails are denials."""
    deny = {"Statement": {"Effect": "Deny", "Action": "ec2:*", "Resource": "*"}}
    assert not is_allowed([allowing("*"), deny], "ec2:ModifyFleet", [Subject(arn=FLEET)])


def test_every_instance_of_a_call_must_be_allowed() -> None:
    """One foreign instance in a batch is one too many."""
    tags = {"i-1": {"cluster": "analytics"}, "i-2": {"cluster": "other"}}
    policy = allowing("ec2:TerminateInstances", StringEquals=OURS)

    def allowed(*ids: str) -> bool:
        subjects = subjects_of("TerminateInstances", {"InstanceIds": list(ids)}, tags, "r:a")
        return is_allowed([policy], "ec2:TerminateInstances", subjects)

    assert allowed("i-1")
    assert not allowed("i-1", "i-2")
    assert not allowed("i-gone")


def test_tags_of_a_foreign_resource_cannot_be_changed() -> None:
    """Whoever may tag anything makes anything his own first."""
    tags = {"fleet-1": {"cluster": "analytics"}, "fleet-2": {"cluster": "other"}}
    policy = allowing("ec2:CreateTags", "arn:aws:ec2:*:*:fleet/*", StringEquals=OURS)
    for resource, expected in (("fleet-1", True), ("fleet-2", False), ("lt-1", False)):
        subjects = subjects_of("CreateTags", {"Resources": [resource]}, tags, "r:a")
        assert is_allowed([policy], "ec2:CreateTags", subjects) is expected


def test_created_resource_is_judged_by_the_tags_of_its_request() -> None:
    """A pipeline may only make fleets of its own cluster."""
    asked = {
        "TagSpecifications": [
            {"ResourceType": "fleet", "Tags": [{"Key": "cluster", "Value": "analytics"}]}
        ]
    }
    policy = allowing("ec2:CreateFleet", StringEquals={"aws:RequestTag/cluster": "analytics"})
    assert is_allowed([policy], "ec2:CreateFleet", subjects_of("CreateFleet", asked, {}, "r:a"))
    assert not is_allowed([policy], "ec2:CreateFleet", subjects_of("CreateFleet", {}, {}, "r:a"))
