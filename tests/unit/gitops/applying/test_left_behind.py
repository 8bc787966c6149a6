"""What an apply that was cut off left in EC2 is imported, not made again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.gitops.applying.left_behind import IMPORTS, imported, left_behind
from reconciler.gitops.terraform_plan.planned import fleets, held_ids
from reconciler.model.errors import Unavailable
from reconciler.model.ids import Region
from tests.unit.gitops.plans import fleet_attributes, fleet_change, group_change, plan, resource

MODULE = 'module.fleets.module.fleet["primary-small"]'


def there(
    _cluster: str, _region: Region, names: Mapping[str, str], groups: Mapping[str, str]
) -> Mapping[str, Mapping[str, str]]:
    """EC2 has the first one already."""
    made = {"aws_ec2_fleet": "fleet-1", "aws_launch_template": "lt-1"}
    group = {"aws_autoscaling_group": "analytics-web-small", "aws_launch_template": "lt-2"}
    return {
        **{name: made for name in names if name == "primary-small"},
        **dict.fromkeys(groups, group),
    }


def silent(
    _cluster: str, _region: Region, _names: Mapping[str, str], _groups: Mapping[str, str]
) -> Mapping[str, Mapping[str, str]]:
    """EC2 does not answer."""
    raise Unavailable("EC2", "no answer")


def test_fleet_that_exists_already_is_imported_with_its_template() -> None:
    """Made again, a fleet would stand there twice, and both would be paid for."""
    planned = fleets(plan(fleet_change(["create"]), fleet_change(["create"], "primary-medium")))
    ids, told = left_behind(planned, there)
    assert ids == {
        f"{MODULE}.aws_ec2_fleet.this": "fleet-1",
        f"{MODULE}.aws_launch_template.this": "lt-1",
    }
    (finding,) = told
    assert (finding.severity, finding.code, finding.where) == (
        "warning",
        "fleet/left-behind",
        "primary-small",
    )


def test_template_is_looked_for_by_the_name_that_the_plan_gives_it() -> None:
    """One with a name of its own would be made again, which EC2 refuses each time."""
    asked: list[Mapping[str, str]] = []

    def look(
        _cluster: str, _region: Region, names: Mapping[str, str], groups: Mapping[str, str]
    ) -> Mapping[str, Mapping[str, str]]:
        asked.extend((names, groups))
        return {}

    template = resource("aws_launch_template", ["create"], None, {"name": "nodes"})
    shown = plan(fleet_change(["create"]), template, group_change(["create"]))
    assert left_behind(fleets(shown), look) == ({}, ())
    assert asked == [{"primary-small": "nodes"}, {"web-small": ""}]


def test_only_what_the_state_does_not_hold_is_imported() -> None:
    """An apply that ended between the two resources left its template in the state."""
    held = {"id": "lt-1", "image_id": "ami-1"}
    shown = plan(fleet_change(["create"]), resource("aws_launch_template", ["no-op"], held, held))
    ids, told = left_behind(fleets(shown), there, held_ids(shown))
    assert ids == {f"{MODULE}.aws_ec2_fleet.this": "fleet-1"}
    assert [finding.message for finding in told] == [
        "fleet fleet-1: exists in EC2 but not in state (interrupted apply?); this plan imports it"
    ]


def test_nothing_is_said_of_a_fleet_that_the_state_holds_elsewhere() -> None:
    """A fleet that a replacement has still to delete has the name of the one to be created."""
    address = f"{MODULE}.aws_ec2_fleet.this"
    values = fleet_attributes() | {"id": "fleet-1"}
    old: dict[str, Any] = {"address": address, "deposed_key": "0a1b2c3d", "values": values}
    template = {"address": f"{MODULE}.aws_launch_template.this", "values": {"id": "lt-1"}}
    modules = {"child_modules": [{"resources": [old, template]}]}
    shown = plan(fleet_change(["create"]), prior_state={"values": {"root_module": modules}})
    assert left_behind(fleets(shown), there, held_ids(shown)) == ({}, ())


def test_group_that_exists_already_is_imported_with_its_template() -> None:
    """Auto Scaling refuses a second group of the name, and the apply would fail each time."""
    ids, told = left_behind(fleets(plan(group_change(["create"]))), there)
    module = 'module.fleets.module.group["web-small"]'
    assert ids == {
        f"{module}.aws_autoscaling_group.this": "analytics-web-small",
        f"{module}.aws_launch_template.this": "lt-2",
    }
    assert [(finding.where, finding.code) for finding in told] == [
        ("web-small", "fleet/left-behind")
    ]


def test_fleets_that_are_no_news_are_not_asked_about() -> None:
    """A plan that creates nothing must need no EC2."""
    planned = fleets(plan(fleet_change(["update"]), fleet_change(["no-op"], "primary-medium")))
    assert left_behind(planned, silent) == ({}, ())


def test_silent_ec2_is_a_warning() -> None:
    """A first plan without the rights to look must still be possible."""
    ids, told = left_behind(fleets(plan(fleet_change(["create"]))), silent)
    assert ids == {}
    assert [finding.code for finding in told] == ["fleet/left-behind-unknown"]


def test_import_blocks_are_there_for_the_plan_only(tmp_path: Path) -> None:
    """A block that stays would be a change of the root module that nobody made."""
    with imported(tmp_path, {f"{MODULE}.aws_ec2_fleet.this": 'fleet-${"x"}'}):
        text = (tmp_path / IMPORTS).read_text()
    assert (
        text == f'import {{\n  to = {MODULE}.aws_ec2_fleet.this\n  id = "fleet-$${{\\"x\\"}}"\n}}\n'
    )
    assert list(tmp_path.iterdir()) == []
