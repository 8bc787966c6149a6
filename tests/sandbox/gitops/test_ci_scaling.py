"""The capacity loop scales while pipelines plan and apply: its targets are never rolled back."""

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from tests.asked import rounds, told
from tests.git_remote import make_remote
from tests.sandbox.gitops.test_ci_killed import Stage, Watched, until
from tests.sandbox.gitops.test_ci_on_aws import BUCKET, REGION, Pipeline, config, needs_provider

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.terraform,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        shutil.which("terraform") is None,
        reason="the terraform program is not on the PATH; install it to run these",
    ),
]
SIZES = "xsmall small medium large xlarge"
TYPES = ("r5.xlarge", "r5.2xlarge", "m5.2xlarge", "m5.4xlarge")


@pytest.fixture
def watched() -> Iterator[Watched]:
    """An account of the test's own, with an empty bucket for state."""
    with AwsServer() as server:
        made = Watched(url=server.url, ids=bootstrap_account(server.url, REGION), server=server)
        with closing(made.client("s3")) as s3:
            where = {"LocationConstraint": REGION}
            s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
        yield made


class Scaler:
    """What the capacity loop does: another target for every fleet, and it remembers which."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self.last: dict[str, int] = {}
        self.moves = 0

    def scale(self) -> None:
        """Move every fleet."""
        with closing(self._watched.client("ec2")) as ec2:
            for fleet in ec2.describe_fleets()["Fleets"]:
                now = fleet["TargetCapacitySpecification"]["TotalTargetCapacity"]
                wanted = (now + 1 + self.moves % 8) % 10  # another one, up or down
                ec2.modify_fleet(
                    FleetId=fleet["FleetId"],
                    ExcessCapacityTerminationPolicy="no-termination",
                    TargetCapacitySpecification={"TotalTargetCapacity": wanted},
                )
                self.last[fleet["FleetId"]] = wanted
                self.moves += 1

    def scale_at(self, stage: Stage) -> None:
        """Move every fleet once the apply has come to this stage."""
        until(lambda: self._watched.reached(stage))
        self.scale()

    def live(self) -> dict[str, int]:
        """The targets that EC2 has."""
        with closing(self._watched.client("ec2")) as ec2:
            found: Any = ec2.describe_fleets()["Fleets"]
        return {
            f["FleetId"]: f["TargetCapacitySpecification"]["TotalTargetCapacity"] for f in found
        }


@needs_provider
def test_targets_set_during_plan_and_apply_stay(watched: Watched, tmp_path: Path) -> None:
    """The provider sends a capacity along with every change of types: never an old one.

    A change of types may be scaled over until Terraform begins; while it carries out tags and
    images, which send no capacity, at any time.
    """
    ignored = ".terraform/\n.terraform.lock.hcl\n"
    work = make_remote(tmp_path, {"README.md": "fleets\n", ".gitignore": ignored})
    pipeline, scaler = Pipeline(work=work, account=watched), Scaler(watched)
    text = config(watched, team="race", sizes=SIZES)
    pipeline.deploy(text)
    fleets, sent, replans = len(SIZES.split()), 0, 0
    applies = rounds(10, 50) // fleets
    for number in range(applies):
        tags_only = number % 2 == 1
        edited = text.replace("OWNER", f"owner-{number}")
        types = f"instance_types: [{TYPES[number // 2 % len(TYPES)]}], max_capacity"
        pipeline.push(edited.replace("max_capacity", types))
        scaler.scale()
        planned = pipeline.plan()
        assert planned.returncode == 0, planned.stderr
        scaler.scale()
        watched.server.calls.clear()
        stage: Stage = "locked" if tags_only else "check"
        during = threading.Thread(target=scaler.scale_at, args=(stage,))
        during.start()
        applied = pipeline.apply()
        during.join(timeout=300)
        assert applied.returncode == 0, applied.stderr
        assert scaler.live() == scaler.last
        replans += json.loads(applied.stdout)["replans"]
        calls = watched.server.calls.calls(action="ModifyFleet")
        ours = [c for c in calls if "Terraform" in c.user_agent]
        assert bool(ours) != tags_only
        sent += len(ours)
        for call in ours:
            capacity = int(call.parameters["TargetCapacitySpecification.TotalTargetCapacity"])
            assert capacity == scaler.last[call.parameters["FleetId"]]
    told(
        f"{applies * fleets} fleets changed in {applies} applies, scaled {scaler.moves} times"
        f" meanwhile: {replans} plans made again, {sent} capacities sent along by Terraform,"
        " none of them old"
    )
