"""The second loop and `reconciler ci` over emulated AWS: fleets, and state in S3 with locking."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.terraform.cli import TerraformCli
from reconciler.adapters.terraform.settings import TerraformSettings
from reconciler.model.errors import ToolError
from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from tests.sandbox.gitops.pipeline_on_aws import (
    BUCKET,
    ENVIRONMENT,
    KEY,
    REGION,
    Account,
    Pipeline,
    config,
    drain,
    empty_bucket,
    fleet,
    make_bucket,
    new_pipeline,
    scale,
    target,
)
from tests.terraform.needs import needs_provider, real_terraform

pytestmark = real_terraform


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    """One emulated AWS for this module."""
    with AwsServer() as server:
        made = Account(url=server.url, ids=bootstrap_account(server.url, REGION))
        yield made


@pytest.fixture(autouse=True)
def bucket(account: Account) -> Iterator[None]:
    """An empty bucket for state."""
    make_bucket(account)
    yield
    empty_bucket(account)
    with closing(account.client("s3")) as s3:
        s3.delete_bucket(Bucket=BUCKET)


@pytest.fixture
def pipeline(tmp_path: Path, account: Account) -> Pipeline:
    """A config repository with nothing rendered yet."""
    return new_pipeline(tmp_path, account)


@pytest.mark.nightly
@needs_provider
def test_capacity_that_moved_after_the_plan_survives_the_apply(
    pipeline: Pipeline, account: Account
) -> None:
    """The provider sends the plan's capacity along: an old plan would end nodes in use."""
    text = config(account, team="move")
    pipeline.deploy(text)
    assert target(account, "move") == 2
    scale(account, fleet(account, "move")["FleetId"], 5)
    unchanged = pipeline.plan()
    assert json.loads(unchanged.stdout)["changes"] is False, unchanged.stdout
    drift = pipeline.reconciler("ci", "drift", "--dir", "terraform", "--detailed-exitcode")
    assert drift.returncode == 0, drift.stdout + drift.stderr
    pipeline.push(text.replace("OWNER", "another"))
    planned = pipeline.plan()
    assert planned.returncode == 0, planned.stderr
    report = json.loads(planned.stdout)
    (found,) = report["fleets"]
    assert (found["step"], found["capacity"]["now"], found["capacity"]["max"]) == ("update", 5, 10)
    assert report["cost"]["hourly_usd_max"] > 0
    scale(account, found["id"], 7)
    applied = pipeline.apply()
    assert applied.returncode == 0, applied.stderr
    assert json.loads(applied.stdout)["replans"] == 1
    assert target(account, "move") == 7
    tags = {t["Key"]: t["Value"] for t in fleet(account, "move")["Tags"]}
    assert tags["owner"] == "another"
    assert account.objects() == [KEY]


@pytest.mark.nightly
@needs_provider
def test_removed_fleet_goes_only_approved_and_drained(pipeline: Pipeline, account: Account) -> None:
    """Deleting a line of YAML must not take the nodes of a sector along."""
    pipeline.deploy(config(account, team="gone", sizes="small medium"))
    pipeline.push(config(account, team="gone", sizes="medium"))
    refused = pipeline.plan()
    assert refused.returncode == 1
    assert "primary-small: fleet/destroy" in refused.stderr
    assert "nodes: " in refused.stderr
    approval = "allow_destroy: [primary-small]\n"
    pipeline.push(config(account, team="gone", sizes="medium", extra=approval))
    assert pipeline.plan().returncode == 0
    waiting = pipeline.apply()
    assert waiting.returncode == 1
    assert "drains it first" in waiting.stderr
    drain(account, fleet(account, "gone")["FleetId"])
    assert pipeline.plan().returncode == 0
    applied = pipeline.apply()
    assert applied.returncode == 0, applied.stderr
    assert target_of_medium(account) == 2


def target_of_medium(account: Account) -> int:
    """The live target of the fleet that stays."""
    entry = fleet(account, "gone", "primary-medium")
    return int(entry["TargetCapacitySpecification"]["TotalTargetCapacity"])


@pytest.mark.nightly
@needs_provider
def test_tag_that_was_changed_by_hand_is_set_again(pipeline: Pipeline, account: Account) -> None:
    """The capacity loop has lost the fleet, and every plan that gave it back was refused."""
    pipeline.deploy(config(account, team="retag"))
    fleet_id = fleet(account, "retag")["FleetId"]
    with closing(account.client("ec2")) as ec2:
        ec2.create_tags(Resources=[fleet_id], Tags=[{"Key": "fleet", "Value": "primary-smal"}])
    planned = pipeline.plan()
    assert planned.returncode == 0, planned.stderr
    (finding,) = json.loads(planned.stdout)["findings"]
    assert (finding["severity"], finding["code"]) == ("warning", "fleet/identity-restored")
    applied = pipeline.apply()
    assert applied.returncode == 0, applied.stderr
    assert fleet(account, "retag")["FleetId"] == fleet_id


@pytest.mark.nightly
@needs_provider
def test_imports_of_a_pull_request_take_nothing_of_another_cluster(
    pipeline: Pipeline, account: Account
) -> None:
    """An import block with an id was enough for the apply to end what another cluster has."""
    with closing(account.client("ec2")) as ec2:
        theirs = _of_another_cluster(ec2, next(iter(account.ids.subnet_ids.values())))
    text = config(account, team="data")
    pipeline.push(text + "allow_destroy: [web-large]\n")
    (pipeline.work / "terraform/imports.tf").write_text(
        "".join(
            f'import {{\n  to = module.fleets.module.fleet["primary-small"].{kind}.this\n'
            f'  id = "{each}"\n}}\n'
            for kind, each in theirs.items()
        )
    )
    planned = pipeline.plan()
    assert planned.returncode == 1
    refused = {
        (finding["where"].split(".")[-2], finding["code"])
        for finding in json.loads(planned.stdout)["findings"]
        if finding["severity"] == "refused"
    }
    assert {(kind, "cluster/foreign") for kind in theirs} <= refused
    assert {(kind, "import/replace") for kind in theirs} <= refused
    applied = pipeline.apply()
    assert applied.returncode == 1
    assert "the guard refused this plan" in applied.stderr
    with closing(account.client("ec2")) as ec2:
        found = ec2.describe_fleets(FleetIds=[theirs["aws_ec2_fleet"]])["Fleets"]
        ec2.describe_launch_templates(LaunchTemplateIds=[theirs["aws_launch_template"]])
    assert [each["FleetState"] for each in found] == ["active"]


def _of_another_cluster(ec2: Any, subnet: str) -> dict[str, str]:
    """Ids by Terraform type of a drained fleet and its launch template."""
    tags = [{"Key": "cluster", "Value": "other"}, {"Key": "fleet", "Value": "web-large"}]
    made = ec2.create_launch_template(
        LaunchTemplateName="other-web-large",
        LaunchTemplateData={"ImageId": "ami-0123456789abcdef0"},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
    )
    template: str = made["LaunchTemplate"]["LaunchTemplateId"]
    fleet: str = ec2.create_fleet(
        Type="maintain",
        ExcessCapacityTerminationPolicy="no-termination",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "$Latest"},
                "Overrides": [{"InstanceType": "m5.large", "SubnetId": subnet}],
            }
        ],
        TargetCapacitySpecification={
            "TotalTargetCapacity": 0,
            "DefaultTargetCapacityType": "on-demand",
        },
        TagSpecifications=[{"ResourceType": "fleet", "Tags": tags}],
    )["FleetId"]
    return {"aws_ec2_fleet": fleet, "aws_launch_template": template}


SLOW_ROOT = """
terraform {
  backend "s3" {
    bucket         = "state"
    key            = "slow.tfstate"
    region         = "us-west-2"
    use_lockfile   = true
    use_path_style = true
  }
}
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "touch started; exec sleep 60"
  }
}
"""


@pytest.fixture
def slow(tmp_path: Path, account: Account, monkeypatch: pytest.MonkeyPatch) -> TerraformCli:
    """A root with state in S3 whose apply takes a minute."""
    for name in [name for name in ENVIRONMENT if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in account.environment.items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "main.tf").write_text(SLOW_ROOT)
    cli = TerraformCli(
        TerraformSettings(directory=tmp_path / "slow", lock_timeout_seconds=0, stop_seconds=20)
    )
    cli.init()
    return cli


def test_state_locked_by_another_run_is_reported_with_its_id(
    slow: TerraformCli, tmp_path: Path, account: Account
) -> None:
    """Two pipelines at once must not write one state, and the second must say who holds it."""
    saved = slow.plan(str(tmp_path / "plan"))
    holder = {"ID": "7e1f-lock", "Who": "ada@laptop", "Operation": "OperationTypeApply"}
    with closing(account.client("s3")) as s3:
        s3.put_object(Bucket=BUCKET, Key="slow.tfstate.tflock", Body=json.dumps(holder).encode())
    with pytest.raises(Exception, match="locked by ada@laptop") as caught:
        slow.apply(saved.file)
    assert type(caught.value).__name__ == "Conflict"
    assert "ci unlock --dir DIR 7e1f-lock" in str(caught.value)


def test_sigterm_during_apply_leaves_no_lock_in_s3(
    slow: TerraformCli, tmp_path: Path, account: Account
) -> None:
    """A cancelled pipeline must not block the next one until somebody unlocks by hand."""
    saved = slow.plan(str(tmp_path / "plan"))
    seen: list[str] = []
    thread = threading.Thread(target=_interrupt, args=(tmp_path / "slow", account, seen))
    thread.start()
    with pytest.raises(ToolError, match="interrupted by SIGTERM"):
        slow.apply(saved.file)
    thread.join(timeout=240)
    assert "slow.tfstate.tflock" in seen
    assert "slow.tfstate.tflock" not in account.objects()


def _interrupt(directory: Path, account: Account, seen: list[str]) -> None:
    """Look at the bucket while the apply is under way, then ask this process to stop."""
    waiting = f"until [ -e {directory}/started ]; do sleep 0.1; done"
    subprocess.run(["sh", "-c", waiting], timeout=240, check=True)
    seen += account.objects()
    os.kill(os.getpid(), signal.SIGTERM)
