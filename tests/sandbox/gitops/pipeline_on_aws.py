"""A config repository and `reconciler ci` over an emulated account, as a team's pipeline is."""

import os
import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from reconciler.sandbox.aws.bootstrap import AccountIds
from tests import command
from tests.git_remote import git, make_remote, write_and_push
from tests.terraform import kept_provider
from tests.terraform.program import mirror_directory
from tests.waiting import until

TIMEOUT_SECONDS = 600
REGION = "us-west-2"
BUCKET = "state"
KEY = "analytics/terraform.tfstate"
ENVIRONMENT = dict(os.environ)  # noqa: TID251 - tests start the programs that are installed here


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
            **{k: v for k, v in ENVIRONMENT.items() if not k.startswith("AWS_")},
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "sandbox",
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def objects(self) -> list[str]:
        """Keys in the bucket."""
        with closing(self.client("s3")) as s3:
            found = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return [entry["Key"] for entry in found]


def with_kept_provider(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a pipeline whose Terraform attaches to a provider that stays."""
    mirror = mirror_directory()
    aws = {key: value for key, value in environment.items() if key.startswith("AWS_")}
    attached = kept_provider.program_that_attaches(mirror, aws) if mirror else {}
    return {**environment, **attached}


def make_bucket(account: Account) -> None:
    """An empty bucket for state."""
    with closing(account.client("s3")) as s3:
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})


def empty_bucket(account: Account) -> None:
    """Leave no state and no lock in it."""
    with closing(account.client("s3")) as s3:
        for key in account.objects():
            s3.delete_object(Bucket=BUCKET, Key=key)


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
        return command.reconciler(
            *arguments,
            cwd=self.work,
            env=with_kept_provider(self.account.environment),
            timeout_seconds=TIMEOUT_SECONDS,
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


def new_pipeline(folder: Path, account: Account) -> Pipeline:
    """A config repository with nothing rendered yet."""
    ignored = ".terraform/\n.terraform.lock.hcl\n"
    work = make_remote(folder, {"README.md": "fleets\n", ".gitignore": ignored})
    return Pipeline(work=work, account=account)


def fleet(account: Account, team: str, name: str = "primary-small") -> dict[str, Any]:
    """The living fleet of a team's cluster."""
    with closing(account.client("ec2")) as ec2:
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
    with closing(account.client("ec2")) as ec2:
        ec2.modify_fleet(
            FleetId=fleet_id,
            ExcessCapacityTerminationPolicy="no-termination",
            TargetCapacitySpecification={"TotalTargetCapacity": target},
        )


def target(account: Account, team: str) -> int:
    """The live target of a team's fleet."""
    return int(fleet(account, team)["TargetCapacitySpecification"]["TotalTargetCapacity"])


def drain(account: Account, fleet_id: str) -> None:
    """What the capacity loop does with a fleet that may go."""
    scale(account, fleet_id, 0)
    with closing(account.client("ec2")) as ec2:
        active = ec2.describe_fleet_instances(FleetId=fleet_id)["ActiveInstances"]
        ids = [entry["InstanceId"] for entry in active]
        if ids:
            ec2.terminate_instances(InstanceIds=ids)


def group(account: Account, name: str) -> dict[str, Any] | None:
    """A group as Auto Scaling has it; None when it is gone."""
    with closing(account.client("autoscaling")) as auto_scaling:
        found = auto_scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    return next(iter(found["AutoScalingGroups"]), None)


def members(account: Account, name: str) -> list[str]:
    """Ids of a group's instances in service."""
    found = group(account, name) or {"Instances": []}
    return [e["InstanceId"] for e in found["Instances"] if e["LifecycleState"] == "InService"]


def drain_group(account: Account, name: str) -> None:
    """What the capacity loop does with a group that may go."""
    with closing(account.client("autoscaling")) as auto_scaling:
        for member in members(account, name):
            auto_scaling.terminate_instance_in_auto_scaling_group(
                InstanceId=member, ShouldDecrementDesiredCapacity=True
            )
    until("a drained group", lambda: not (group(account, name) or {}).get("Instances"), seconds=30)
