"""Plans that come up rarely: what the guard says about them, and what it does not refuse."""

from typing import Any

from reconciler.gitops.terraform_plan.guard import GuardPolicy, guard
from tests.unit.gitops.plans import (
    fleet_attributes,
    fleet_change,
    group_attributes,
    group_change,
    plan,
    resource,
)

ALLOWED = GuardPolicy(allow_destroy=frozenset({"web-small", "primary-small"}))


def told(*changes: dict[str, Any], **parts: Any) -> list[tuple[str, str, str]]:
    """Severity, code and place of each finding, with every fleet approved."""
    found = guard(plan(*changes, **parts), ALLOWED)
    return [(each.severity, each.code, each.where) for each in found]


def test_launch_template_that_gets_a_new_identity_is_a_warning() -> None:
    """The rights of another program may name it by its id."""
    attributes = {"id": "lt-1", "image_id": "ami-1"}
    change = resource("aws_launch_template", ["create", "delete"], attributes, attributes)
    assert told(change) == [("warning", "template/replace", change["address"])]


def test_rest_of_a_fleet_whose_group_exists_already_may_be_removed() -> None:
    """An apply that was cut off, and was approved, could never be finished."""
    rest = resource(
        "aws_ec2_fleet", ["delete"], fleet_attributes("web-small", 0), None, key="web-small"
    )
    assert told(group_change(["no-op"]), rest) == []
    assert told(group_change(["update"]), rest) == []


def test_launch_template_in_another_region_goes_with_its_fleet() -> None:
    """The reviewer would read each fault twice."""
    arn = "arn:aws:ec2:eu-west-1:123456789012:launch-template/lt-1"
    template = {"id": "lt-1", "arn": arn}
    elsewhere = resource("aws_launch_template", ["no-op"], template, template)
    assert told(elsewhere) == []


def test_fleet_in_another_region_without_a_name_is_told_by_its_address() -> None:
    """The refusal would name nothing."""
    arn = "arn:aws:ec2:eu-west-1:123456789012:fleet/fleet-1"
    attributes = fleet_attributes(arn=arn, tags={})
    elsewhere = resource("aws_ec2_fleet", ["no-op"], attributes, attributes)
    assert told(elsewhere) == [("refused", "fleet/region", elsewhere["address"])]


def test_subnets_of_a_group_that_is_replaced_are_no_warning_of_their_own() -> None:
    """The whole group ends, which is said already."""
    before = group_attributes(target=0)
    after = group_attributes(target=0, vpc_zone_identifier=["subnet-0aa"])
    change = resource("aws_autoscaling_group", ["create", "delete"], before, after, key="web-small")
    assert told(change) == []


def test_subnet_of_an_ordinary_update_that_stays_is_no_warning() -> None:
    """Every plan would carry a warning that nobody can act on."""
    more = ["subnet-0aa", "subnet-0bb", "subnet-0cc"]
    assert told(group_change(["update"], vpc_zone_identifier=more)) == []
    assert told(fleet_change(["update"], tags=fleet_attributes()["tags"])) == []
