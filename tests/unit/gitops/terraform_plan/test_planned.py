"""What is read from a plan about its fleets: what the guard and the reviewer then go by."""

from typing import Any

import pytest

from reconciler.gitops.terraform_plan.planned import (
    PlannedFleet,
    fleets,
    provider_region,
    region_elsewhere,
    resources,
)
from tests.unit.gitops.plans import (
    AWS,
    fleet_attributes,
    fleet_change,
    group_attributes,
    group_change,
    plan,
    resource,
    template_change,
)


def the_fleet(*changes: dict[str, Any]) -> PlannedFleet:
    """The one fleet of a plan."""
    (found,) = fleets(plan(*changes))
    return found


def from_variable(**variables: str) -> dict[str, Any]:
    """A plan whose provider has its Region from a variable."""
    provider = {"full_name": AWS, "expressions": {"region": {"references": ["var.region"]}}}
    return plan(
        configuration={"provider_config": {"aws": provider}},
        variables={name: {"value": value} for name, value in variables.items()},
    )


def test_region_of_the_provider_may_come_from_a_variable() -> None:
    """A fleet that the refresh does not find there would be forgotten without a word."""
    assert provider_region(from_variable(region="eu-west-1")) == "eu-west-1"
    assert provider_region(from_variable(other="eu-west-1")) == ""


def test_provider_that_has_its_region_from_the_environment_is_in_no_other_one() -> None:
    """Every plan of such a root module would be refused."""
    shown = from_variable()
    for planned_resource in resources(plan(fleet_change(["no-op"]))):
        assert region_elsewhere(shown, planned_resource) == ""
        assert region_elsewhere(from_variable(region="eu-west-1"), planned_resource) == "us-west-2"


def test_only_what_the_loop_runs_is_looked_for_in_another_region() -> None:
    """Other resources may live in any Region."""
    attributes = {"arn": "arn:aws:sqs:eu-west-1:123456789012:queue:x"}
    (queue,) = resources(plan(resource("aws_sqs_queue", ["no-op"], attributes, attributes)))
    assert region_elsewhere(plan(), queue) == ""


@pytest.mark.parametrize(("share", "spot"), [(0, True), (50, True), (100, False), (None, False)])
def test_group_is_shown_as_spot_if_any_of_its_instances_are(share: int | None, spot: bool) -> None:
    """The reviewer would see another price, and other interruptions, than those that come."""
    group = group_change(["no-op"])
    for side in ("before", "after"):
        policy = group["change"][side]["mixed_instances_policy"][0]
        policy["instances_distribution"] = [{"on_demand_percentage_above_base_capacity": share}]
    assert the_fleet(group).spot is spot


@pytest.mark.parametrize(("kind", "spot"), [("spot", True), ("on-demand", False), (None, None)])
def test_fleet_is_shown_by_the_kind_of_its_target(kind: str | None, spot: bool | None) -> None:
    """The reviewer would see another price, and other interruptions, than those that come."""
    target = [{"default_target_capacity_type": kind, "total_target_capacity": 2}]
    assert the_fleet(fleet_change(["update"], target_capacity_specification=target)).spot is spot


def test_instance_types_are_those_of_the_fleet_and_of_the_group() -> None:
    """The reviewer would approve types that the plan does not name."""
    assert the_fleet(fleet_change(["create"])).instance_types == ("r4.xlarge", "r5.xlarge")
    assert the_fleet(fleet_change(["delete"])).instance_types == ("r4.xlarge", "r5.xlarge")
    assert the_fleet(group_change(["create"])).instance_types == ("c4.2xlarge", "c5.2xlarge")
    requirements = [{"override": [{"instance_requirements": [{}]}, {"instance_type": ""}]}]
    without = fleet_change(["create"], launch_template_config=requirements)
    assert the_fleet(without).instance_types == ()
    assert the_fleet(fleet_change(["create"], launch_template_config=[])).instance_types == ()


@pytest.mark.parametrize("template_first", [True, False])
def test_launch_template_is_shown_with_its_fleet(template_first: bool) -> None:
    """A new image would be no change of any fleet."""
    changes = [fleet_change(["no-op"]), template_change("ami-1", "ami-2")]
    found = the_fleet(*(reversed(changes) if template_first else changes))
    assert found.changed == ("launch_template.image_id",)
    assert (found.ami_before, found.ami_after) == ("ami-1", "ami-2")


def test_data_sources_are_no_resources_of_the_plan() -> None:
    """A group that is only looked up would be refused as one that is changed."""
    entry = group_change(["update"]) | {"mode": "data"}
    assert resources(plan(entry)) == ()


def test_absent_value_that_becomes_an_empty_one_is_no_change() -> None:
    """Providers read an absent list as an empty one: every plan would show a change."""
    before, after = fleet_attributes(overrides=None), fleet_attributes(overrides=[])
    assert the_fleet(resource("aws_ec2_fleet", ["update"], before, after)).changed == ()
    after = fleet_attributes(overrides=["x"])
    assert the_fleet(resource("aws_ec2_fleet", ["update"], before, after)).changed == ("overrides",)


@pytest.mark.parametrize(
    ("change", "touches", "sends"),
    [
        (fleet_change(["create"]), False, False),
        (fleet_change(["no-op"]), False, False),
        (fleet_change(["update"], tags={"team": "data"}), True, False),
        (fleet_change(["update"], context="x"), True, True),
        (fleet_change(["delete"]), True, True),
        (group_change(["update"], max_size=30), True, True),
        (group_change(["update"], vpc_zone_identifier=["subnet-0aa"]), True, False),
        (group_change(["delete"]), True, True),
    ],
)
def test_capacity_is_sent_by_every_change_but_that_of_tags(
    change: dict[str, Any], touches: bool, sends: bool
) -> None:
    """An apply would roll the live capacity back to that of the plan."""
    found = the_fleet(change)
    assert (found.touches_capacity, found.sends_capacity) == (touches, sends)


def test_only_a_group_has_a_name_in_auto_scaling() -> None:
    """Its live capacity would not be read, or a fleet's would be asked for there."""
    assert the_fleet(group_change(["no-op"])).groups == {"analytics-web-small"}
    assert the_fleet(fleet_change(["no-op"])).groups == frozenset()


def test_capacity_of_what_is_created_or_removed_is_not_known() -> None:
    """A new fleet would be shown as one that grows from 0, and a removed one as one that stays."""
    made, gone = the_fleet(fleet_change(["create"])), the_fleet(fleet_change(["delete"]))
    assert (made.capacity_before, made.capacity_after) == (None, 2)
    assert (gone.capacity_before, gone.capacity_after) == (2, None)
    assert the_fleet(group_change(["create"])).capacity_before is None
    resized = group_attributes(max_size=1)
    change = resource("aws_autoscaling_group", ["update"], group_attributes(), resized)
    assert the_fleet(change).capacity_after == 1
