"""What binds an approved plan: its inputs, and what it would do."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.gitops.terraform_plan.inputs import (
    PlanInputs,
    essence,
    inputs_from,
    inputs_json,
    is_part_of,
)
from reconciler.ports.terraform import StateVersion
from tests.unit.gitops.plans import (
    fleet_attributes,
    fleet_change,
    group_attributes,
    group_change,
    plan,
    resource,
)

APPROVED = PlanInputs(
    commit="c0ffee" * 6 + "c0ff",
    tree_sha256="a" * 64,
    plan_sha256="b" * 64,
    state=StateVersion(lineage="line", serial=7),
    targets={"fleet-b": 2, "fleet-a": 1},
)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({"commit": ""}, "the commit was c0ffeec0ffee, is none"),
        ({"commit": "d" * 40}, "the commit was c0ffeec0ffee, is dddddddddddd"),
        (
            {"tree_sha256": "e" * 64},
            "the files of the root module was aaaaaaaaaaaa, is eeeeeeeeeeee",
        ),
        ({"plan_sha256": "f" * 64}, "the plan file was bbbbbbbbbbbb, is ffffffffffff"),
        ({"state": StateVersion(lineage="", serial=7)}, "the state's lineage was line, is none"),
        ({"state": StateVersion(lineage="line", serial=8)}, "the state's serial was 7, is 8"),
    ],
)
def test_each_input_that_changed_is_named_with_both_values(now: dict[str, Any], told: str) -> None:
    """A plan would be applied to something that nobody approved."""
    assert APPROVED.differences(replace(APPROVED, **now)) == (told,)


def test_same_inputs_with_other_live_targets_do_not_differ() -> None:
    """The capacity loop scales between the approval and the apply: no plan would be applied."""
    assert APPROVED.differences(replace(APPROVED, targets={"fleet-a": 9})) == ()


def test_first_state_and_checkout_outside_git_are_shown_as_none() -> None:
    """The line would say that something was nothing."""
    first = replace(APPROVED, commit="", state=StateVersion(lineage="", serial=7))
    assert first.differences(APPROVED) == (
        "the commit was none, is c0ffeec0ffee",
        "the state's lineage was none, is line",
    )


def test_inputs_survive_the_report_and_are_written_in_order() -> None:
    """The report of one plan would differ from run to run."""
    written = inputs_json(APPROVED)
    assert inputs_from(written) == APPROVED
    assert list(written["targets"]) == ["fleet-a", "fleet-b"]


def test_live_capacity_is_no_part_of_what_a_plan_does() -> None:
    """A fleet that scaled since the approval would need another one."""
    other_tags = {"tags": {"cluster": "analytics", "fleet": "primary-small", "team": "data"}}

    def seen(**live: Any) -> str:
        before = fleet_attributes(**live)
        return essence(plan(resource("aws_ec2_fleet", ["update"], before, before | other_tags)))

    assert seen(target=9, fleet_state="modifying") == seen(target=2, fleet_state="active")
    assert seen(context="x") != seen()


def test_live_capacity_of_a_group_is_no_part_of_what_a_plan_does() -> None:
    """A group that scaled since the approval would need another one."""

    def seen(target: int, **after: Any) -> str:
        before = group_attributes(target=target)
        return essence(plan(resource("aws_autoscaling_group", ["update"], before, before | after)))

    assert seen(9, max_size=30) == seen(2, max_size=30)
    assert seen(2, max_size=31) != seen(2, max_size=30)


def test_what_stays_as_it_is_is_no_part_of_what_a_plan_does() -> None:
    """A refresh that reads one attribute more would end every approval."""
    made = fleet_change(["create"])
    assert essence(plan(made, group_change(["no-op"]))) == essence(plan(made))
    assert essence(plan(made, group_change(["create"]))) != essence(plan(made))


def test_order_of_the_changes_is_no_part_of_what_a_plan_does() -> None:
    """Terraform promises none."""
    changes = fleet_change(["create"]), group_change(["create"])
    assert essence(plan(*changes)) == essence(plan(*reversed(changes)))


def test_edit_of_one_fleet_excuses_no_change_of_another() -> None:
    """Pools of a fleet that nobody approved would be changed with those of an approved one."""
    pools = {"launch_template_config": [{"override": [{"instance_type": "m5.large"}]}]}
    whole = plan(fleet_change(["update"], "other"))
    part = plan(fleet_change(["update"], "other", **pools))
    (address,) = (entry["address"] for entry in part["resource_changes"])
    assert is_part_of(part, whole, {address})
    assert not is_part_of(part, whole, {"module.fleets"})
    assert not is_part_of(plan(fleet_change(["delete"])), whole, {address})
