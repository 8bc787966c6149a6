"""`reconciler import` over the emulated AWS: what exists gets a config, the plan no changes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from reconciler.config.loader import load_config
from reconciler.gitops.live import live_drift
from reconciler.gitops.render import render
from reconciler.gitops.root_module import root_module_of
from reconciler.gitops.write import write_rendered
from reconciler.model.ids import Region
from reconciler.records.aws import decode_cloud
from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from tests.terraform.program import TerraformProgram, find_terraform

pytestmark = [pytest.mark.terraform, pytest.mark.sandbox, pytest.mark.timeout(3600)]

CLUSTER = "analytics"
REGION = "us-west-2"
PROGRAM = [sys.executable, "-m", "reconciler"]
TIMEOUT_SECONDS = 120
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
        done = subprocess.run(
            [*PROGRAM, *arguments, "--output", "json"],
            env=_ENVIRONMENT | self.settings,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
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


def test_pipeline_carries_out_the_imports(world: World, applied: Path) -> None:
    """Imports are no changes of anything, yet an apply is due: the state must learn of them."""
    out = applied / "adopted"
    world.reconciler("import", "--cluster-name", CLUSTER, "--out", str(out))
    world.rendered(out / "sectors.yaml", out / "terraform")
    stages = ["--dir", str(out / "terraform")]
    plan = world.reconciler("ci", "plan", *stages, "--out", str(applied / "plan"))
    assert plan["changes"] is True, plan
    assert plan["counts"] == {"import": 6}
    assert "**6 to import**" in (applied / "plan/summary.md").read_text()
    world.reconciler("ci", "apply", *stages, "--plan", str(applied / "plan"))
    (out / "terraform/imports.tf").unlink()
    assert world.reconciler("ci", "drift", *stages)["drift"] is False
