"""The second loop and `reconciler ci` over emulated AWS: fleets, and state in S3 with locking."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from reconciler.adapters.terraform.cli import TerraformCli
from reconciler.adapters.terraform.mirror import VARIABLE, plugin_directory
from reconciler.adapters.terraform.settings import TerraformSettings
from reconciler.model.errors import ToolError
from reconciler.sandbox.aws.bootstrap import AccountIds, bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from tests.git_remote import git, make_remote, write_and_push

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.terraform,
    pytest.mark.timeout(3600),  # each command starts the AWS provider, which takes its seconds
    pytest.mark.skipif(
        shutil.which("terraform") is None,
        reason="the terraform program is not on the PATH; install it to run these",
    ),
]
TIMEOUT_SECONDS = 600
REGION = "us-west-2"
BUCKET = "state"
KEY = "analytics/terraform.tfstate"
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - tests start the programs that are installed here
needs_provider = pytest.mark.skipif(
    plugin_directory(_ENVIRONMENT, Path.cwd()) is None and not _ENVIRONMENT.get("CI"),
    reason=f"no mirror has the AWS provider ({VARIABLE} names one); with CI set the network is"
    " asked",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An emulated account with a bucket for state."""

    url: str
    ids: AccountIds

    def client(self, service: str) -> Any:
        """A boto3 client of it."""
        session: Any = boto3.Session("sandbox", "sandbox", region_name=REGION)
        return session.client(service, endpoint_url=self.url)

    @property
    def environment(self) -> dict[str, str]:
        """What a pipeline gets to see."""
        return {
            **{k: v for k, v in _ENVIRONMENT.items() if not k.startswith("AWS_")},
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "sandbox",
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def objects(self) -> list[str]:
        """Keys in the bucket."""
        with _closing(self.client("s3")) as s3:
            found = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return [entry["Key"] for entry in found]


class _closing:  # noqa: N801 - named as contextlib's, for clients without types
    def __init__(self, client: Any) -> None:
        self._client = client

    def __enter__(self) -> Any:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    """One emulated AWS for this module."""
    with AwsServer() as server:
        made = Account(url=server.url, ids=bootstrap_account(server.url, REGION))
        yield made


@pytest.fixture(autouse=True)
def bucket(account: Account) -> Iterator[None]:
    """An empty bucket for state."""
    with _closing(account.client("s3")) as s3:
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield
        for key in account.objects():
            s3.delete_object(Bucket=BUCKET, Key=key)
        s3.delete_bucket(Bucket=BUCKET)


def config(account: Account, *, team: str = "data", sizes: str = "small", extra: str = "") -> str:
    """A sector config whose state is in the account's bucket."""
    subnets = ", ".join(f"{zone}: {subnet}" for zone, subnet in account.ids.subnet_ids.items())
    fleets = "".join(
        f"    - {{size: {size}, max_capacity: 10, initial_node_count: 2}}\n"
        for size in sizes.split()
    )
    return (
        f"cluster: {team}-cluster\nregions: [{REGION}]\n{extra}"
        "terraform:\n"
        f"  ami: {account.ids.ami}\n  security_group_id: {account.ids.security_group_id}\n"
        f"  private_subnet_ids: {{{subnets}}}\n"
        f"  backend:\n    bucket: {BUCKET}\n    key: {KEY}\n    region: {REGION}\n"
        f"    endpoint: {account.url!r}\n"
        "  tags: {owner: OWNER}\n"
        f"sectors:\n  primary:\n    kind: memory\n    fleets:\n{fleets}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A config repository and the commands that work on it."""

    work: Path
    account: Account

    def push(self, text: str) -> None:
        """Push a config and let the second loop render it."""
        git(self.work, "pull", "-q", "--rebase", "origin", "main")
        write_and_push(self.work, "sectors.yaml", text, "Change the config")
        done = self.reconciler("gitops", "--once", "--repository", str(self.remote))
        assert done.returncode == 0, done.stderr
        git(self.work, "pull", "-q", "--rebase", "origin", "main")

    @property
    def remote(self) -> Path:
        """The bare repository."""
        return self.work.parent / "remote.git"

    def reconciler(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The program in the person's clone."""
        return subprocess.run(
            [sys.executable, "-c", "from reconciler.cli.main import main; main()", *arguments],
            cwd=self.work,
            env=self.account.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def plan(self) -> subprocess.CompletedProcess[str]:
        """`ci plan`."""
        return self.reconciler("ci", "plan", "--dir", "terraform", "--out", "../plan")

    def apply(self) -> subprocess.CompletedProcess[str]:
        """`ci apply` of what `plan` kept."""
        return self.reconciler("ci", "apply", "--dir", "terraform", "--plan", "../plan")

    def deploy(self, text: str) -> None:
        """The whole way of a change."""
        self.push(text)
        planned = self.plan()
        assert planned.returncode == 0, planned.stderr
        applied = self.apply()
        assert applied.returncode == 0, applied.stderr


@pytest.fixture
def pipeline(tmp_path: Path, account: Account) -> Pipeline:
    """A config repository with nothing rendered yet."""
    ignored = ".terraform/\n.terraform.lock.hcl\n"
    work = make_remote(tmp_path, {"README.md": "fleets\n", ".gitignore": ignored})
    return Pipeline(work=work, account=account)


def fleet(account: Account, team: str, name: str = "primary-small") -> dict[str, Any]:
    """The living fleet of a team's cluster."""
    with _closing(account.client("ec2")) as ec2:
        found = ec2.describe_fleets()["Fleets"]
    wanted = {"cluster": f"{team}-cluster", "fleet": name}
    matching: list[dict[str, Any]] = [
        entry
        for entry in found
        if wanted.items() <= {t["Key"]: t["Value"] for t in entry["Tags"]}.items()
        and not entry["FleetState"].startswith("deleted")
    ]
    assert len(matching) == 1
    return matching[0]


def scale(account: Account, fleet_id: str, target: int) -> None:
    """What the capacity loop does."""
    with _closing(account.client("ec2")) as ec2:
        ec2.modify_fleet(
            FleetId=fleet_id,
            ExcessCapacityTerminationPolicy="no-termination",
            TargetCapacitySpecification={"TotalTargetCapacity": target},
        )


def target(account: Account, team: str) -> int:
    """The live target of a team's fleet."""
    return int(fleet(account, team)["TargetCapacitySpecification"]["TotalTargetCapacity"])


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


def drain(account: Account, fleet_id: str) -> None:
    """What the capacity loop does with a fleet that may go."""
    scale(account, fleet_id, 0)
    with _closing(account.client("ec2")) as ec2:
        active = ec2.describe_fleet_instances(FleetId=fleet_id)["ActiveInstances"]
        ids = [entry["InstanceId"] for entry in active]
        if ids:
            ec2.terminate_instances(InstanceIds=ids)


def target_of_medium(account: Account) -> int:
    """The live target of the fleet that stays."""
    entry = fleet(account, "gone", "primary-medium")
    return int(entry["TargetCapacitySpecification"]["TotalTargetCapacity"])


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
    for name in [name for name in _ENVIRONMENT if name.startswith("AWS_")]:
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
    with _closing(account.client("s3")) as s3:
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
    thread.join(timeout=60)
    assert "slow.tfstate.tflock" in seen
    assert "slow.tfstate.tflock" not in account.objects()


def _interrupt(directory: Path, account: Account, seen: list[str]) -> None:
    """Look at the bucket while the apply is under way, then ask this process to stop."""
    waiting = f"until [ -e {directory}/started ]; do sleep 0.1; done"
    subprocess.run(["sh", "-c", waiting], timeout=60, check=True)
    seen += account.objects()
    os.kill(os.getpid(), signal.SIGTERM)
