"""Which changes of a fleet EC2 is asked for without a capacity."""

from typing import Any

import pytest

from reconciler.gitops.terraform_plan.inputs import is_part_of
from reconciler.gitops.terraform_plan.planned import fleets
from reconciler.gitops.terraform_plan.pools import pool_edits
from tests.unit.gitops.plans import fleet_attributes, plan, resource, template_change

ADDRESS = 'module.fleets.module.fleet["primary-small"].aws_ec2_fleet.this'
OTHER_TAGS = {"cluster": "analytics", "fleet": "primary-small", "team": "data"}


def pools(*types: str, **template: Any) -> list[dict[str, Any]]:
    """A fleet's `launch_template_config` block as Terraform shows it."""
    named = {"launch_template_id": "lt-1", "launch_template_name": "", "version": "$Latest"}
    overrides = [
        {"instance_type": each, "subnet_id": "subnet-a", "max_price": "", "priority": 0}
        for each in types
    ]
    return [{"launch_template_specification": [named | template], "override": overrides}]


def change(after: dict[str, Any], **before: Any) -> dict[str, Any]:
    """An update of one fleet from r5.xlarge to what `after` says."""
    old = {"launch_template_config": pools("r5.xlarge"), **before}
    return resource(
        "aws_ec2_fleet", ["update"], fleet_attributes(**old), fleet_attributes(**old | after)
    )


def test_change_of_types_is_given_in_the_words_of_ec2() -> None:
    """A word that EC2 does not know would be refused, and Terraform would send a capacity."""
    wanted = {"launch_template_config": pools("r5.2xlarge", "m5.4xlarge"), "tags": OTHER_TAGS}
    (edit,) = pool_edits(plan(change(wanted)))
    assert (edit.address, edit.cluster) == (ADDRESS, "analytics")
    assert (edit.region, edit.fleet_id) == ("us-west-2", "fleet-primary-small")
    assert edit.configs == (
        {
            "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "$Latest"},
            "Overrides": [
                {"InstanceType": "r5.2xlarge", "SubnetId": "subnet-a"},
                {"InstanceType": "m5.4xlarge", "SubnetId": "subnet-a"},
            ],
        },
    )


@pytest.mark.parametrize(
    "wanted",
    [
        {"tags": OTHER_TAGS},
        {"launch_template_config": pools("m5.large"), "context": "other"},
        {"launch_template_config": [{"override": [{"instance_requirements": [{"a": 1}]}]}]},
        {"launch_template_config": []},
    ],
)
def test_change_that_ec2_cannot_make_alone_is_left_to_terraform(wanted: dict[str, Any]) -> None:
    """Half of a change made by us would be a state that nobody approved."""
    assert pool_edits(plan(change(wanted))) == ()


def test_template_that_does_not_exist_yet_is_left_to_terraform() -> None:
    """Its id is known after the apply only."""
    entry = change({"launch_template_config": pools("m5.large", launch_template_id=None)})
    specification = [{"launch_template_id": True}]
    entry["change"]["after_unknown"] = {
        "launch_template_config": [{"launch_template_specification": specification}]
    }
    assert pool_edits(plan(entry)) == ()


def test_import_of_another_fleet_changes_nothing_about_it() -> None:
    """A capacity would be sent because an earlier apply was cut off."""
    entry = template_change("ami-1", "ami-2", name="primary-medium")
    entry["change"]["importing"] = {"id": "lt-2"}
    wanted = {"launch_template_config": pools("m5.large")}
    assert len(pool_edits(plan(change(wanted), entry))) == 1


@pytest.mark.parametrize("first", [True, False])
def test_fleet_that_a_replacement_left_behind_is_not_the_one_that_changes(*, first: bool) -> None:
    """Cut off between making the new and ending the old one, a state has two under one address."""
    wanted = change({"launch_template_config": pools("m5.large")})
    old = resource("aws_ec2_fleet", ["delete"], fleet_attributes(id="fleet-old"), None)
    old["deposed"] = "0a1b2c3d"
    entries = (old, wanted) if first else (wanted, old)
    (edit,) = pool_edits(plan(*entries))
    assert edit.fleet_id == "fleet-primary-small"


@pytest.mark.parametrize(
    ("wanted", "sends"),
    [
        ({"tags": OTHER_TAGS}, False),
        ({"launch_template_config": pools("m5.large")}, True),
        ({"context": "other"}, True),
    ],
)
def test_capacity_is_sent_with_everything_but_tags(wanted: dict[str, Any], *, sends: bool) -> None:
    """As the provider does: an apply that thinks otherwise would roll capacity back."""
    (fleet,) = fleets(plan(change(wanted), template_change("ami-1", "ami-2")))
    assert fleet.sends_capacity is sends


def test_rest_of_a_plan_is_part_of_it() -> None:
    """What EC2 has done already must not look like a change that nobody approved."""
    both = {"launch_template_config": pools("m5.large"), "tags": OTHER_TAGS}
    whole = plan(change(both), template_change("ami-1", "ami-2"))
    tags = change({"tags": OTHER_TAGS}, launch_template_config=pools("m5.large"))
    edited = frozenset({ADDRESS})
    assert is_part_of(plan(tags), whole, edited)
    assert is_part_of(plan(template_change("ami-1", "ami-2")), whole, frozenset())
    assert is_part_of(plan(), whole, edited)


@pytest.mark.parametrize(
    "other",
    [
        template_change("ami-1", "ami-3"),
        template_change("ami-1", "ami-2", name="primary-medium"),
        change({"tags": {**OTHER_TAGS, "team": "other"}}),
        change({"launch_template_config": pools("m5.large"), "context": "other"}),
    ],
)
def test_anything_else_is_no_part_of_a_plan(other: dict[str, Any]) -> None:
    """What came between the parts of an apply was approved by nobody."""
    both = {"launch_template_config": pools("m5.large"), "tags": OTHER_TAGS}
    whole = plan(change(both), template_change("ami-1", "ami-2"))
    assert not is_part_of(plan(other), whole, frozenset({ADDRESS}))
