"""The examples: each is valid and plans as a whole; what the emulated AWS can serve is applied."""

import json
import re
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from reconciler.cli.main import run
from reconciler.config.loader import load_config
from reconciler.gitops.drift.live import fleet_tags
from reconciler.gitops.rendering.root_module import root_module_of
from reconciler.sandbox.aws.server import AwsServer
from tests.terraform.program import TerraformProgram, find_terraform
from tests.terraform.readme_tables import MODULES

pytestmark = [pytest.mark.terraform, pytest.mark.timeout(3600)]

EXAMPLES = sorted(path.parent.name for path in MODULES.glob("examples/*/main.tf"))
CLUSTER = {
    "cluster_name": "analytics",
    "cluster_oidc_provider_arn": (
        "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/ABC"
    ),
    "node_role_arn": "arn:aws:iam::123456789012:role/node",
    "state_bucket": "analytics-state",
    "repository": "team/fleets",
}


@pytest.fixture
def terraform() -> TerraformProgram:
    """The program, or a skipped test."""
    return find_terraform()


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A copy of all modules to work in."""
    copy = tmp_path / "terraform"
    shutil.copytree(MODULES, copy, ignore=shutil.ignore_patterns(".terraform*"))
    return copy


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_valid_and_plans_as_a_whole(
    name: str, terraform: TerraformProgram, modules: Path
) -> None:
    """An example that does not plan is the first thing a new user sees."""
    folder = modules / "examples" / name
    terraform.init(folder)
    valid = terraform.run(folder, "validate")
    assert valid.returncode == 0, valid.stderr
    tested = terraform.run(folder, "test")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert " passed, 0 failed" in tested.stdout


def test_complete_example_hands_its_fleet_over_unchanged(
    terraform: TerraformProgram, modules: Path, tmp_path: Path
) -> None:
    """The config that it prints has to be one, and to mean the fleet that is there already."""
    folder = modules / "examples/complete"
    terraform.init(folder)
    tested = terraform.run(folder, "test", "-json", "-verbose")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    state = next(
        found["test_state"]
        for line in tested.stdout.splitlines()
        if "test_state" in (found := json.loads(line))
    )
    config = tmp_path / "sectors.yaml"
    # All subnets of the mocked provider have one name; those of AWS each have their own.
    number = count(1)
    text = state["outputs"]["sector_config"]["value"]
    config.write_text(re.sub(r"subnet-0aa", lambda _: f"subnet-{next(number):03}", text))
    variables = root_module_of(load_config(config)).fleets["primary-small"]
    (fleets,) = [
        m for m in state["root_module"]["child_modules"] if m["address"] == "module.fleets"
    ]
    (made,) = [
        resource["values"]
        for module in fleets["child_modules"]
        for resource in module["resources"]
        if resource["type"] == "aws_ec2_fleet"
    ]
    assert made["tags"] == fleet_tags("analytics", "primary-small", variables)
    target = made["target_capacity_specification"][0]["total_target_capacity"]
    assert target == variables["initial_node_count"]
    image = ["--image", "team/reconciler:1"]
    assert run(["manifest", "--config", str(config), "--sector", "primary", *image]) == 0


def test_existing_cluster_gives_rights_to_groups_only_where_they_are_asked_for(
    terraform: TerraformProgram, modules: Path
) -> None:
    """Whoever comes from Cluster Autoscaler has groups, and the first cycle would be denied."""
    folder = modules / "examples/existing-cluster"
    terraform.init(folder)
    tested = terraform.run(folder, "test", "-json", "-verbose")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    planned = {
        found["@testrun"]: json.dumps(found["test_plan"])
        for line in tested.stdout.splitlines()
        if "test_plan" in (found := json.loads(line))
    }
    assert {name for name, plan in planned.items() if "capacity-loop-groups" in plan} == {
        "accepts_auto_scaling_groups"
    }
    assert len(planned) > 1


@pytest.fixture
def server() -> Iterator[AwsServer]:
    """The emulated AWS."""
    with AwsServer() as running:
        yield running


@pytest.mark.nightly
@pytest.mark.sandbox
def test_existing_cluster_is_applied_and_then_planned_empty(
    terraform: TerraformProgram, modules: Path, server: AwsServer
) -> None:
    """Roles, queue, rules and bucket must be what AWS takes, and stay as they are."""
    folder = modules / "examples/existing-cluster"
    (folder / "terraform.tfvars.json").write_text(json.dumps(CLUSTER))
    terraform.init(folder)
    where = {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
        # Buckets as part of the path: no name resolution for a host per bucket on loopback.
        "AWS_S3_USE_PATH_STYLE": "true",
    }
    applied = terraform.run(folder, "apply", "-auto-approve", **where)
    assert applied.returncode == 0, applied.stdout + applied.stderr
    planned = terraform.run(folder, "plan", "-detailed-exitcode", **where)
    assert planned.returncode == 0, planned.stdout + planned.stderr
    shown = json.loads(terraform.run(folder, "output", "-json", **where).stdout)
    made = shown["reconciler"]["value"]
    assert made["role_arn"].endswith(":role/analytics-fleet-reconciler")
    assert made["queue_url"].endswith("/analytics-fleet-reconciler")
    assert made["apply_role_arn"] != made["plan_role_arn"]
