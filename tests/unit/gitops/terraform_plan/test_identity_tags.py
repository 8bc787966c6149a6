"""Tags by which the capacity loop finds a fleet are given back, and never changed away."""

from typing import Any

import pytest

from reconciler.gitops.terraform_plan.guard import GuardPolicy, guard
from tests.unit.gitops.plans import fleet_attributes, group_attributes, plan, resource

OWN = {"cluster": "analytics", "fleet": "primary-small"}
OF_ANALYTICS = {"cluster_name": {"value": "analytics"}}


def attributes(kind: str, tags: dict[str, str]) -> dict[str, Any]:
    """A living fleet or group with these tags."""
    if kind == "aws_ec2_fleet":
        return fleet_attributes(tags=tags)
    return group_attributes(tag=[{"key": k, "value": v} for k, v in tags.items()])


def changed(
    there: dict[str, str],
    planned: dict[str, str],
    *,
    applied: dict[str, str] | None = None,
    kind: str = "aws_ec2_fleet",
) -> dict[str, Any]:
    """A plan from the tags in EC2 to the planned ones.

    Args:
        there: What EC2 has.
        planned: What the root module asks for.
        applied: What the state has, when EC2 has something else since.
        kind: Of a fleet or of a group.
    """
    before = attributes(kind, there)
    drift = []
    if applied is not None:
        drift = [resource(kind, ["update"], attributes(kind, applied), before)]
    entry = resource(kind, ["update"], before, attributes(kind, planned))
    return plan(entry, variables=OF_ANALYTICS, resource_drift=drift)


def found(shown: dict[str, Any]) -> list[tuple[str, str]]:
    """Severity and code of each finding."""
    return [(each.severity, each.code) for each in guard(shown, GuardPolicy())]


KINDS = ["aws_ec2_fleet", "aws_autoscaling_group"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "there",
    [{**OWN, "fleet": "primary-smal"}, {"cluster": "analytics"}, {"fleet": "primary-small"}],
    ids=["fleet changed", "fleet removed", "cluster removed"],
)
def test_tag_that_was_changed_by_hand_is_given_back(kind: str, there: dict[str, str]) -> None:
    """The only plan that gave the fleet back was refused, and with it every new image."""
    shown = changed(there, OWN, applied=OWN, kind=kind)
    assert found(shown) == [("warning", "fleet/identity-restored")]


@pytest.mark.parametrize(
    ("there", "now", "tag"),
    [
        ({**OWN, "fleet": "primary-smal"}, "is primary-smal", ("fleet", "primary-small")),
        ({"fleet": "primary-small"}, "is gone", ("cluster", "analytics")),
    ],
)
def test_reviewer_reads_what_the_tag_is_and_becomes(
    there: dict[str, str], now: str, tag: tuple[str, str]
) -> None:
    """A role that may only touch what has the cluster's tag cannot set that tag by itself."""
    (finding,) = guard(changed(there, OWN, applied=OWN), GuardPolicy())
    key, value = tag
    assert finding.message == (
        f"the tag {key} was changed outside of Terraform: it {now}, and this plan sets it to"
        f" {value} again. If the role that applies may not set it: aws ec2 create-tags --region"
        f" us-west-2 --resources fleet-primary-small --tags Key={key},Value={value}"
    )


def test_command_for_a_group_is_that_of_auto_scaling() -> None:
    """EC2 does not know groups' tags."""
    shown = changed({"cluster": "analytics"}, OWN, applied=OWN, kind="aws_autoscaling_group")
    (finding,) = guard(shown, GuardPolicy())
    assert finding.message.endswith(
        "aws autoscaling create-or-update-tags --region us-west-2 --tags"
        " ResourceId=analytics-web-small,ResourceType=auto-scaling-group,Key=fleet,"
        "Value=primary-small,PropagateAtLaunch=false"
    )


@pytest.mark.parametrize(
    ("there", "planned", "applied"),
    [
        (OWN, {**OWN, "fleet": "spare-small"}, None),
        (OWN, {"cluster": "analytics"}, None),
        (OWN, {"fleet": "primary-small"}, None),
        ({**OWN, "fleet": "old-small"}, OWN, None),
        ({**OWN, "fleet": "old-small"}, OWN, {**OWN, "fleet": "old-small", "team": "web"}),
        (OWN, {**OWN, "fleet": "primary-smal"}, {**OWN, "fleet": "primary-smal"}),
        (OWN, {"cluster": "analytics"}, {"cluster": "analytics"}),
        ({**OWN, "fleet": "x"}, {**OWN, "fleet": "y"}, {**OWN, "fleet": "y"}),
    ],
    ids=[
        "another name",
        "no name",
        "no cluster",
        "a moved fleet takes the name of another",
        "a moved fleet with another tag by hand",
        "a wrong name that was fixed by hand",
        "a name that was set by hand",
        "to a name that is not its own",
    ],
)
def test_tag_that_would_be_changed_away_stays_refused(
    there: dict[str, str], planned: dict[str, str], applied: dict[str, str] | None
) -> None:
    """The capacity loop would lose the fleet, or find another's nodes in it."""
    assert found(changed(there, planned, applied=applied)) == [("refused", "fleet/identity")]


def test_fleet_with_the_tag_of_another_cluster_is_not_taken_back() -> None:
    """Somebody may have handed it over: its nodes would be nodes of two clusters."""
    shown = changed({**OWN, "cluster": "other"}, OWN, applied=OWN)
    assert ("refused", "cluster/foreign") in found(shown)


def test_tag_that_the_state_has_wrong_too_is_fixed_by_hand() -> None:
    """After `terraform apply -refresh-only` nothing shows that it was changed by hand."""
    (finding,) = guard(changed({**OWN, "fleet": "primary-smal"}, OWN), GuardPolicy())
    assert finding.severity == "refused"
    assert finding.message == (
        "the tag fleet would change from primary-smal to primary-small, and the state does not"
        " show that it ever was primary-small: a renamed fleet is a new one and the removal of the"
        " old. If it was changed by hand: aws ec2 create-tags --region us-west-2 --resources"
        " fleet-primary-small --tags Key=fleet,Value=primary-small"
    )
