"""`reconciler import` of fleets that others made: all of it is kept, the first plan is empty."""

import json
from pathlib import Path
from typing import Any

from reconciler.config.loader import load_config
from reconciler.sandbox.aws.bootstrap import bootstrap_account
from tests.terraform.others import OTHER_TERRAFORM, make_by_hand
from tests.terraform.test_adopted_fleets import CLUSTER, World, pytestmark, world

__all__ = ["pytestmark", "world"]

_LEFT = "stays out of Terraform (managed: false), as it is"


def test_fleets_of_others_are_imported_without_a_change(world: World, tmp_path: Path) -> None:
    """A fleet that is changed by being taken over launches nodes that never join."""
    ids = bootstrap_account(world.server.url)
    world.ec2.create_key_pair(KeyName="ops")
    (tmp_path / "others").mkdir()
    (tmp_path / "others/main.tf").write_text(OTHER_TERRAFORM)
    subnets = dict(list(ids.subnet_ids.items())[:2])
    variables = {"ami": ids.ami, "security_group": ids.security_group_id, "subnets": subnets}
    (tmp_path / "others/others.auto.tfvars.json").write_text(json.dumps(variables))
    world.terraform.init(tmp_path / "others")
    world.call(tmp_path / "others", "apply", "-auto-approve")
    by_hand = make_by_hand(world.ec2, ids)
    before = _newest_versions(world)

    out = tmp_path / "adopted"
    answer = world.reconciler("import", "--cluster-name", CLUSTER, "--out", str(out))
    assert set(answer["left_out"]) == {by_hand["weighted"]}
    entries = {
        f"{name}-{fleet.size}": fleet
        for name, sector in load_config(out / "sectors.yaml").sectors.items()
        for fleet in sector.fleets
    }
    kept_out = {name for name, fleet in entries.items() if not fleet.managed}
    assert kept_out == {"hand-cores", "hand-older", "hand-secret"}
    assert "hunter2" not in (out / "sectors.yaml").read_text()
    limits = {name: (each.min_capacity, each.max_capacity) for name, each in entries.items()}
    assert limits["primary-small"] == (3, None)
    assert limits["web-wide"] == (1, 7)
    assert limits["hand-mixed"] == (3, None)
    notes = "\n".join(answer["notes"])
    for said in (
        "primary-small: its user data is kept as it is",
        "primary-small: its user data does not give nodes the labels size=small",
        "primary-small: it launches from version 1",
        "primary-small: nothing states its least number of nodes, so its present target 3",
        "primary-medium: its image starts with /etc/eks/bootstrap.sh",
        "hand-mixed: 1 of its target are on-demand and 2 spot",
        "hand-mixed: EC2 ends its instances when its target falls",
        "hand-mixed: IMDSv1 stays allowed",
        "hand-mixed: the CPU credits of its launch template (standard)",
        "hand-bare: it has no instance profile",
        f"hand-cores: {_LEFT}: its launch template sets CpuOptions",
        f"hand-older: {_LEFT}: it launches from version 1",
        f"hand-secret: {_LEFT}: its user data holds",
        "web-wide: it launches from $Default",
    ):
        assert said in notes, said

    world.rendered(out / "sectors.yaml", out / "terraform")
    printed = world.call(out / "terraform", "plan", "-out=saved")
    assert "10 to import, 0 to add, 0 to change, 0 to destroy" in printed, printed
    world.call(out / "terraform", "apply", "saved")
    assert _newest_versions(world) == before
    (out / "terraform/imports.tf").unlink()
    assert "No changes." in world.call(out / "terraform", "plan")


def _newest_versions(world: World) -> list[dict[str, Any]]:
    """The newest version of each launch template, as EC2 tells it."""
    answer = world.ec2.describe_launch_template_versions(Versions=["$Latest"])
    versions: list[dict[str, Any]] = answer["LaunchTemplateVersions"]
    return versions
