"""Auto Scaling groups on their way from a commit to AWS, and out of it again."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from tests.sandbox.gitops.pipeline_on_aws import (
    REGION,
    Account,
    config,
    drain_group,
    group,
    make_bucket,
    members,
    new_pipeline,
)
from tests.terraform.needs import needs_provider, real_terraform
from tests.waiting import until

pytestmark = real_terraform

GROUP = "asg-cluster-large"


@pytest.fixture
def account() -> Iterator[Account]:
    """An emulated AWS, quick, with a bucket for state."""
    delays = Delays(launch_seconds=0.1, terminate_seconds=0.1, modify_seconds=0.1)
    with AwsServer(delays=delays) as server:
        made = Account(url=server.url, ids=bootstrap_account(server.url, REGION))
        make_bucket(made)
        yield made


@pytest.mark.nightly
@needs_provider
def test_group_is_made_scaled_kept_while_it_has_nodes_and_removed_when_it_has_none(
    tmp_path: Path, account: Account
) -> None:
    """Terraform ends all instances of a group that it destroys: only an empty one may go."""
    pipeline = new_pipeline(tmp_path, account)
    without = config(account, team="asg")
    entry = (
        f"    - {{size: large, provider: asg, auto_scaling_group: {GROUP}, max_capacity: 5,"
        " initial_node_count: 1}\n"
    )
    pipeline.deploy(without + entry)
    with closing(account.client("autoscaling")) as auto_scaling:
        auto_scaling.set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=3)
    until("three instances", lambda: len(members(account, GROUP)) == 3, seconds=30)
    drift = pipeline.reconciler("ci", "drift", "--dir", "terraform", "--detailed-exitcode")
    assert drift.returncode == 0, drift.stdout + drift.stderr

    pipeline.push(without + entry.replace("max_capacity: 5", "max_capacity: 2"))
    too_low = pipeline.plan()
    assert too_low.returncode == 1
    assert "fleet/capacity" in too_low.stdout

    pipeline.push(without)
    refused = pipeline.plan()
    assert refused.returncode == 1
    (finding,) = [f for f in json.loads(refused.stdout)["findings"] if f["severity"] == "refused"]
    assert (finding["code"], finding["where"]) == ("fleet/destroy", "primary-large")
    assert "target capacity 3; nodes: " in finding["message"]

    allowed = "allow_destroy: [primary-large]\n"
    pipeline.push(config(account, team="asg", extra=allowed).replace("OWNER", "another"))
    planned = pipeline.plan()
    assert planned.returncode == 0, planned.stdout + planned.stderr
    waiting = pipeline.apply()
    assert waiting.returncode == 1
    assert "drains it first" in waiting.stderr
    assert len(members(account, GROUP)) == 3
    (fleet,) = (e for e in _fleets(account) if e["tags"].get("owner") == "another")
    assert fleet["tags"]["fleet"] == "primary-small"

    drain_group(account, GROUP)
    finished = pipeline.reconciler("ci", "finish", "--dir", "terraform")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert json.loads(finished.stdout)["removed"] == ["primary-large"]
    assert group(account, GROUP) is None


def _fleets(account: Account) -> list[dict[str, Any]]:
    """EC2's fleets with their tags by key."""
    with closing(account.client("ec2")) as ec2:
        found = ec2.describe_fleets()["Fleets"]
    return [{**each, "tags": {t["Key"]: t["Value"] for t in each["Tags"]}} for each in found]
