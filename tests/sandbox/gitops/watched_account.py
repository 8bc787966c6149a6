"""An emulated account whose calls are kept: what a pipeline did, and how far it has come."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from tests.sandbox.gitops.pipeline_on_aws import BUCKET, KEY, REGION, Account, make_bucket

LOCK = f"{KEY}.tflock"
Stage = Literal["start", "check", "locked", "creating", "written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched(Account):
    """An account whose calls can be watched."""

    server: AwsServer

    def reached(self, stage: Stage) -> bool:
        """Whether the apply that is under way has come to this stage."""
        calls = self.server.calls
        if stage == "start":
            return True
        if stage == "check":
            return bool(calls.calls(service="s3"))
        puts = [c.parameters.get("Path", "") for c in calls.calls(service="s3", action="PUT")]
        if stage == "locked":
            return f"/{BUCKET}/{LOCK}" in puts
        if stage == "creating":
            return bool(calls.calls(action="CreateLaunchTemplate"))
        return f"/{BUCKET}/{KEY}" in puts

    def body(self, key: str) -> dict[str, Any] | None:
        """An object of the bucket as JSON; None when it is not there."""
        if key not in self.objects():
            return None
        with closing(self.client("s3")) as s3:
            read: dict[str, Any] = json.loads(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
        return read

    def living(self) -> list[dict[str, Any]]:
        """The fleets that are there."""
        with closing(self.client("ec2")) as ec2:
            found = ec2.describe_fleets()["Fleets"]
        return [fleet for fleet in found if not fleet["FleetState"].startswith("deleted")]

    def names(self) -> list[str]:
        """Names of the living fleets, each as often as it is there."""
        tags = [tag for fleet in self.living() for tag in fleet["Tags"]]
        return sorted(tag["Value"] for tag in tags if tag["Key"] == "fleet")

    def types(self) -> set[str]:
        """Instance types that the living fleets may launch."""
        configs = [
            launch_template_config
            for fleet in self.living()
            for launch_template_config in fleet["LaunchTemplateConfigs"]
        ]
        return {override["InstanceType"] for config in configs for override in config["Overrides"]}


@contextmanager
def watched_account() -> Iterator[Watched]:
    """An account of the caller's own, with an empty bucket for state."""
    with AwsServer() as server:
        made = Watched(url=server.url, ids=bootstrap_account(server.url, REGION), server=server)
        make_bucket(made)
        yield made
