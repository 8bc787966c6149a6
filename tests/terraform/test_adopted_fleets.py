"""`reconciler import` over the emulated AWS: what exists gets a config, the plan no changes."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from reconciler.config.loader import load_config
from reconciler.gitops.drift.live import live_drift
from reconciler.gitops.rendering.render import render
from reconciler.gitops.rendering.root_module import root_module_of
from reconciler.gitops.rendering.write import write_rendered
from reconciler.model.ids import Region
from reconciler.records.aws import decode_cloud
from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from tests import command
from tests.terraform.others import OTHER_TERRAFORM, make_by_hand
from tests.terraform.program import TerraformProgram, find_terraform

pytestmark = [pytest.mark.terraform, pytest.mark.sandbox, pytest.mark.timeout(3600)]

CLUSTER = "analytics"
REGION = "us-west-2"
TIMEOUT_SECONDS = 120
_LEFT = "stays out of Terraform (managed: false), as it is"
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - the process needs PATH and HOME
CONFIG = """\
cluster: analytics
regions: [us-west-2]
sizes:
  wide: {{kind: memory, cpu: 2, memory: 16Gi, instance_types: [r6i.large, r5.large]}}
terraform:
  ami: {ami}
  security_group_id: {group}
  private_subnet_ids: {{us-west-2a: {subnet_a}, us-west-2b: {subnet_b}}}
  instance_profile_name: node
  tags: {{environment: production}}
sectors:
  primary:
    kind: memory
    terraform: {{node_taints: [{{key: dedicated, value: batch, effect: NoSchedule}}]}}
    fleets:
    - {{size: small, labels: {{team: data}}}}
    - {{size: medium, zone: us-west-2a, terraform: {{ebs_size: 100, tags: {{team: data}}}}}}
    - {{size: wide, spot: false, terraform: {{on_demand_prefer_no_schedule_taint: true}}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """An emulated account, a client of it, and a program that talks to it."""

    server: AwsServer
    ec2: Any
    autoscaling: Any
    terraform: TerraformProgram

    @property
    def settings(self) -> dict[str, str]:
        """Where AWS is and who we are."""
        return {
            "AWS_ENDPOINT_URL": self.server.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def reconciler(self, *arguments: str) -> dict[str, Any]:
        """The program as a process; what it answers."""
        done = command.reconciler(
            *arguments,
            *("--output", "json"),
            env=_ENVIRONMENT | self.settings,
            timeout_seconds=TIMEOUT_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def call(self, folder: Path, *arguments: str) -> str:
        """One terraform call that succeeds; what it printed."""
        done = self.terraform.run(folder, *arguments, **self.settings)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def rendered(self, config: Path, folder: Path) -> None:
        """The root module of a config, initialised."""
        write_rendered(render(root_module_of(load_config(config))), folder)
        self.terraform.init(folder)


@pytest.fixture
def world() -> Iterator[World]:
    """A quick account of the test's own."""
    delays = Delays(launch_seconds=0.1, terminate_seconds=0.1, modify_seconds=0.1)
    session: Any = boto3.Session("test", "test", region_name=REGION)
    with AwsServer(delays=delays) as server:
        clients = [session.client(name, endpoint_url=server.url) for name in ("ec2", "autoscaling")]
        yield World(
            server=server, ec2=clients[0], autoscaling=clients[1], terraform=find_terraform()
        )
        for client in clients:
            client.close()


@pytest.fixture
def applied(world: World, tmp_path: Path) -> Path:
    """The folder of a config whose fleets were applied and whose state was lost."""
    ids = bootstrap_account(world.server.url)
    config = tmp_path / "before.yaml"
    config.write_text(
        CONFIG.format(
            ami=ids.ami,
            group=ids.security_group_id,
            subnet_a=ids.subnet_ids["us-west-2a"],
            subnet_b=ids.subnet_ids["us-west-2b"],
        )
    )
    world.rendered(config, tmp_path / "before")
    world.call(tmp_path / "before", "apply", "-auto-approve")
    return tmp_path


@pytest.mark.nightly
def test_lost_state_is_brought_back_by_an_import_that_changes_nothing(
    world: World, applied: Path
) -> None:
    """Adopting must not replace a fleet with running nodes, nor lose a label or taint."""
    out = applied / "adopted"
    answer = world.reconciler("import", "--cluster-name", CLUSTER, "--out", str(out))
    assert answer["fleets"] == ["primary-medium-us-west-2a", "primary-small", "primary-wide"]
    assert (answer["left_out"], answer["unreadable"]) == ({}, [])
    cloud = decode_cloud([(Region(REGION), world.ec2.describe_fleets())], cluster=CLUSTER)
    assert live_drift(load_config(applied / "before.yaml"), Region(REGION), cloud) == ()
    before = root_module_of(load_config(applied / "before.yaml")).fleets
    world.rendered(out / "sectors.yaml", out / "terraform")
    printed = world.call(out / "terraform", "plan", "-out=saved")
    assert "6 to import, 0 to add, 0 to change, 0 to destroy" in printed, printed
    assert set(before) == set(answer["fleets"])
    world.call(out / "terraform", "apply", "saved")
    (out / "terraform/imports.tf").unlink()
    assert "No changes." in world.call(out / "terraform", "plan")


@pytest.mark.nightly
def test_pipeline_carries_out_the_imports(world: World, applied: Path) -> None:
    """Imports are no changes of anything, yet an apply is due: the state must learn of them."""
    out = applied / "adopted"
    world.reconciler("import", "--cluster-name", CLUSTER, "--out", str(out))
    world.rendered(out / "sectors.yaml", out / "terraform")
    stages = ["--dir", str(out / "terraform")]
    plan = world.reconciler("ci", "plan", *stages, "--out", str(applied / "plan"))
    assert plan["changes"] is True, plan
    assert plan["counts"] == {"import": 6}
    assert "**3 fleets to import (6 resources)**" in (applied / "plan/summary.md").read_text()
    world.reconciler("ci", "apply", *stages, "--plan", str(applied / "plan"))
    (out / "terraform/imports.tf").unlink()
    assert world.reconciler("ci", "drift", *stages)["drift"] is False


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
    limits = {
        name: (fleet_entry.min_capacity, fleet_entry.max_capacity)
        for name, fleet_entry in entries.items()
    }
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
