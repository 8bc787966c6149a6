"""Plans that come up rarely: what the guard says about them, and what it does not refuse."""

from typing import Any

import pytest

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


def test_fleet_in_another_region_without_a_name_is_named_by_its_address() -> None:
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


def test_fleet_that_terraform_forgets_is_a_warning() -> None:
    """It goes on costing money with nobody to change it."""
    assert told(fleet_change(["forget"])) == [("warning", "fleet/forget", "primary-small")]


@pytest.mark.parametrize(
    ("actions", "verb"), [(["delete"], "destroyed"), (["create", "delete"], "replaced")]
)
@pytest.mark.parametrize(("count", "more"), [(20, False), (21, True)])
def test_removal_names_what_happens_and_no_more_than_twenty_nodes(
    actions: list[str], verb: str, count: int, *, more: bool
) -> None:
    """The reviewer would approve another thing, or read a page of names."""
    nodes = {"fleet-primary-small": tuple(f"n{number:02}" for number in range(count))}
    (refusal,) = guard(plan(fleet_change(actions)), GuardPolicy(nodes=nodes))
    assert refusal.message.startswith(f"would be {verb} (target capacity 2; nodes: n00, ")
    assert ("n19 …)" in refusal.message) is more
    assert ("n19)" in refusal.message) is not more
    (refusal,) = guard(plan(fleet_change(actions)), GuardPolicy())
    assert refusal.message.startswith(f"would be {verb} (target capacity 2); undo the edit")


def test_approved_removal_waits_while_nodes_are_left_whatever_the_target_says() -> None:
    """The target is lowered before the instances end."""
    change = fleet_change(["delete"])
    change["change"]["before"] = fleet_attributes(target=0)
    policy = GuardPolicy(allow_destroy=ALLOWED.allow_destroy, nodes={"fleet-primary-small": ("n",)})
    (finding,) = guard(plan(change), policy)
    assert (finding.severity, finding.code) == ("warning", "fleet/not-drained")
    assert guard(plan(change), ALLOWED) == ()


def test_only_a_groups_capacity_is_said_to_follow_its_maximum() -> None:
    """A fleet has no maximum in AWS: the reviewer would look for one."""
    target = fleet_attributes(target=9)["target_capacity_specification"]
    (of_fleet,) = guard(
        plan(fleet_change(["update"], target_capacity_specification=target)), ALLOWED
    )
    assert of_fleet.message == (
        "target capacity 2 would become 9; capacity belongs to the capacity loop (ignore_changes)"
    )
    (of_group,) = guard(plan(group_change(["update"], max_size=1)), ALLOWED)
    assert "its maximum would be less" in of_group.message


def test_builtin_provider_needs_no_version() -> None:
    """It is a part of Terraform, and no version can be stated."""
    providers = {"terraform": {"full_name": "terraform.io/builtin/terraform"}}
    assert told(configuration={"provider_config": providers}) == []


@pytest.mark.parametrize(
    ("invoked", "where"),
    [({"type": "aws_ec2_stop_instance"}, "aws_ec2_stop_instance"), ({}, "action")],
)
def test_action_without_an_address_is_reported_by_its_type(
    invoked: dict[str, str], where: str
) -> None:
    """The refusal would name nothing."""
    entry = {"action_invocation": invoked or {"trigger": "after_create"}}
    assert told(deferred_action_invocations=[entry]) == [("refused", "action/foreign", where)]
