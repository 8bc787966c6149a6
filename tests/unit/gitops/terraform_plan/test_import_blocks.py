"""`imports.tf` that stays after its apply: named while that does no harm, and before it does."""

import json
from pathlib import Path

import pytest

from reconciler.gitops.rendering.render import TFVARS
from reconciler.gitops.terraform_plan.import_blocks import done_imports
from reconciler.gitops.terraform_plan.root_files import foreign_files
from tests.unit.gitops.plans import fleet_change, plan

HEADER = "# Written by `reconciler import`; remove it once it was applied.\n"


def block(key: str, call: str = "fleet", kind: str = "aws_ec2_fleet") -> str:
    """A block as `reconciler import` writes it."""
    return (
        f'import {{\n  to = module.fleets.module.{call}["{key}"].{kind}.this\n'
        f'  id = "id-of-{key}"\n}}\n'
    )


def module_with(folder: Path, *blocks: str, values: object) -> Path:
    """A root module with these blocks and these values of its variables."""
    (folder / "imports.tf").write_text(HEADER + "\n".join(blocks))
    (folder / TFVARS).write_text(json.dumps(values))
    return folder


VALUES = {
    "cluster_name": "analytics",
    "fleets": {"primary-small": {}, "web-small": {"auto_scaling_group": "web"}},
}


def test_blocks_of_fleets_that_the_root_has_are_accepted(tmp_path: Path) -> None:
    """The pull request that adopts fleets has exactly these."""
    blocks = (block("primary-small"), block("web-small", "group", "aws_autoscaling_group"))
    assert foreign_files(module_with(tmp_path, *blocks, values=VALUES), allowed={}) == ()


@pytest.mark.parametrize(
    ("blocks", "named"),
    [
        ((block("primary-small"), block("primary-medium")), "primary-medium"),
        ((block("web-small"),), "web-small"),
        ((block("a"), block("a", kind="aws_launch_template"), block("b")), "a, b"),
    ],
    ids=["a removed fleet", "a fleet that is a group", "each once"],
)
def test_block_of_a_fleet_that_the_root_has_not_is_refused_by_name(
    tmp_path: Path, blocks: tuple[str, ...], named: str
) -> None:
    """After the removal Terraform could plan nothing of this root, and named no file."""
    (found,) = foreign_files(module_with(tmp_path, *blocks, values=VALUES), allowed={})
    assert (found.severity, found.code, found.where) == ("refused", "import/gone", "imports.tf")
    assert found.message == (
        f"names {named}, which fleets.auto.tfvars.json has not: once it is out of the state,"
        " Terraform can plan nothing here. Remove the file, which is of no use after its apply, or"
        " these blocks; or wait until the config that has the fleet is rendered"
    )


@pytest.mark.parametrize("values", [[], {"cluster_name": "a", "fleets": None}, {"fleets": []}])
def test_values_that_are_none_are_reported_as_such(tmp_path: Path, values: object) -> None:
    """A file that somebody broke must not become an exception."""
    found = foreign_files(module_with(tmp_path, block("a"), values=values), allowed={})
    assert found
    assert {each.code for each in found} <= {"file/changed", "import/gone"}


def test_file_whose_blocks_are_all_in_the_state_is_named(tmp_path: Path) -> None:
    """A year later nobody thinks of it."""
    module = module_with(tmp_path, block("primary-small"), values=VALUES)
    importing = fleet_change(["no-op"])
    importing["change"]["importing"] = {"id": "id-of-primary-small"}
    assert done_imports(module, plan(importing)) == ()
    (found,) = done_imports(module, plan(fleet_change(["no-op"])))
    assert (found.severity, found.code, found.where) == ("warning", "import/done", "imports.tf")
    assert found.message == "everything that it names is in the state: remove the file"


def test_root_without_such_a_file_has_nothing_to_remove(tmp_path: Path) -> None:
    """Most roots never had one, and another file's blocks are their author's."""
    assert done_imports(tmp_path, plan(fleet_change(["no-op"]))) == ()
    (tmp_path / "imports.tf").write_text("# nothing\n")
    assert done_imports(tmp_path, plan(fleet_change(["no-op"]))) == ()
