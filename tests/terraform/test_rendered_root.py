"""A rendered root as terraform sees it, without a cloud: literal texts, rules at var.fleets."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.gitops.render import TFVARS, render
from reconciler.gitops.root_module import RootModule
from reconciler.gitops.write import write_rendered
from tests.terraform.program import TerraformProgram, find_terraform

pytestmark = pytest.mark.terraform

# Merged over the rendered provider block: nothing of AWS is asked while planning new fleets.
OFFLINE_PROVIDER = """
provider "aws" {
  region                      = "us-west-2"
  access_key                  = "none"
  secret_key                  = "none"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
}
"""
HOSTILE = {
    "interpolation": '${file("/etc/passwd")}',
    "escaped": "$${x} %%{y}",
    "directive": "%{ for x in [1] }${x}%{ endfor }",
    "quotes": "\"double\" 'single' `back`",
    "backslashes": "\\n \\u0041 \\\\ \\",
    "shell": "$(id) ; | & < >",
    "unicode": "ünïcode 日本 😀",
    "${key}": "",
}


def make_fleet(**overrides: Any) -> dict[str, Any]:
    """The variables of a small fleet that is fit to be made."""
    return {
        "sector_label": "primary",
        "node_pool_size": "small",
        "node_pool_kind": "memory",
        "spot": True,
        "initial_node_count": 2,
        "ami": "ami-0aa",
        "security_group_id": "sg-0aa",
        "private_subnet_ids": {"us-west-2a": "subnet-0aa"},
        **overrides,
    }


@pytest.fixture(scope="module")
def plan(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[dict[str, Any]], tuple[TerraformProgram, Path, str]]:
    """Plans a root with other fleets in its tfvars; gives the program, the folder and stderr."""
    terraform = find_terraform()
    folder = tmp_path_factory.mktemp("root")
    root = RootModule(cluster_name="analytics", region="us-west-2", fleets={})
    write_rendered(render(root), folder)
    (folder / "offline_override.tf").write_text(OFFLINE_PROVIDER)
    terraform.init(folder)

    def run(fleets: dict[str, Any]) -> tuple[TerraformProgram, Path, str]:
        variables = {"cluster_name": "analytics", "fleets": fleets}
        (folder / TFVARS).write_text(json.dumps(variables))
        done = terraform.run(folder, "plan", "-out=saved", "-refresh=false")
        assert bool(done.stderr.strip()) == bool(done.returncode), done.stderr
        return terraform, folder, " ".join(done.stderr.replace("│", " ").split())

    return run


def planned(terraform: TerraformProgram, folder: Path) -> dict[str, dict[str, Any]]:
    """What the saved plan makes, by resource type (for one fleet)."""
    shown = json.loads(terraform.run(folder, "show", "-json", "saved").stdout)
    changes = shown["resource_changes"]
    assert [change["change"]["actions"] for change in changes] == [["create"]] * len(changes)
    return {change["type"]: change["change"]["after"] for change in changes}


def test_hostile_tags_are_planned_literally(plan: Callable[..., Any]) -> None:
    """A tag that is evaluated would publish what the planning machine can read."""
    terraform, folder, errors = plan({"primary-small": make_fleet(tags=HOSTILE)})
    assert errors == ""
    resources = planned(terraform, folder)
    ours = {
        "Name": "analytics-primary-small",
        "Spot": "true",
        "cluster": "analytics",
        "fleet": "primary-small",
        "kind": "memory",
        "kubernetes.io/cluster/analytics": "owned",
        "sector": "primary",
        "size": "small",
    }
    template, fleet = resources["aws_launch_template"], resources["aws_ec2_fleet"]
    assert fleet["tags"] == template["tags"] == HOSTILE | ours
    specifications = {s["resource_type"]: s["tags"] for s in template["tag_specifications"]}
    assert specifications == {"instance": HOSTILE | ours, "volume": HOSTILE | ours}


def test_user_data_is_known_when_planning(plan: Callable[..., Any]) -> None:
    """A reviewer who sees `known after apply` cannot say what the nodes will run."""
    terraform, folder, errors = plan({"primary-small": make_fleet(node_labels={"team": "data"})})
    assert errors == ""
    assert planned(terraform, folder)["aws_launch_template"]["user_data"]


@pytest.mark.parametrize(
    ("fleets", "message"),
    [
        (
            {
                "primary-small": make_fleet(),
                "primary-small-us-west-2a": make_fleet(zone="us-west-2a"),
            },
            "both with and without zone",
        ),
        (
            {
                "primary-small": make_fleet(),
                "primary-medium": make_fleet(node_pool_size="medium", node_pool_kind="cpu"),
            },
            "of one sector_label must have one node_pool_kind",
        ),
        (
            {"primary-small": make_fleet(tags={"Spot": "no", "aws:x": "y"})},
            "must not use reserved keys in tags",
        ),
        ({"other-small": make_fleet()}, "must be named <sector_label>-<node_pool_size>"),
        ({"primary-small": make_fleet(ami="")}, "ami must be the id of a machine image"),
    ],
    ids=["with-and-without-zone", "two-kinds", "reserved-tags", "name", "no-image"],
)
def test_faulty_fleets_are_refused_when_planning(
    fleets: dict[str, Any], message: str, plan: Callable[..., Any]
) -> None:
    """A tfvars file edited by hand must meet the rules that `reconciler validate` enforces."""
    *_, errors = plan(fleets)
    assert message in errors
