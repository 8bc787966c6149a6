"""The capacity loop scales while pipelines plan and apply: its targets are never rolled back."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.full_proofs import rounds
from tests.sandbox.gitops.pipeline_on_aws import config, new_pipeline
from tests.sandbox.gitops.watched_account import Watched, watched_account
from tests.terraform.needs import needs_provider, real_terraform

pytestmark = real_terraform
PAUSE_SECONDS = 1.0
SIZES = "xsmall small medium large xlarge"
TYPES = ("r5.xlarge", "r5.2xlarge", "m5.2xlarge", "m5.4xlarge")


@pytest.fixture
def watched() -> Iterator[Watched]:
    """An account of the test's own, with an empty bucket for state."""
    with watched_account() as made:
        yield made


class Scaler:
    """What the capacity loop does: another target for every fleet, and it remembers which."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self.last: dict[str, int] = {}
        self.moves = 0
        self.rounds = 0

    def scale(self) -> None:
        """Move every fleet."""
        self.rounds += 1
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

    def scale_until(self, over: threading.Event) -> None:
        """Move every fleet again and again."""
        while not over.wait(PAUSE_SECONDS):
            self.scale()

    def live(self) -> dict[str, int]:
        """The targets that EC2 has."""
        with closing(self._watched.client("ec2")) as ec2:
            found: Any = ec2.describe_fleets()["Fleets"]
        return {
            f["FleetId"]: f["TargetCapacitySpecification"]["TotalTargetCapacity"] for f in found
        }


@contextmanager
def scaling(scaler: Scaler) -> Iterator[None]:
    """A capacity loop that never rests."""
    over = threading.Event()
    thread = threading.Thread(target=scaler.scale_until, args=(over,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=300)


@needs_provider
def test_targets_set_at_any_moment_of_plan_and_apply_stay(
    watched: Watched, tmp_path: Path, closing_lines: list[str]
) -> None:
    """The provider sends a capacity along with every change of types: it must never get to it.

    Nothing waits for a calm: every fleet gets another target every second, all the time.
    """
    pipeline, scaler = new_pipeline(tmp_path, watched), Scaler(watched)
    text = config(watched, team="race", sizes=SIZES)
    pipeline.deploy(text)
    fleets, edits, replans = len(SIZES.split()), 0, 0
    number = -1
    while number + 1 < rounds(1, 4) or scaler.rounds < rounds(5, 50):
        number += 1
        edited = text.replace("OWNER", f"owner-{number}")
        if number % 2 == 1:
            edited = edited.replace(watched.ids.ami, f"ami-0000000{number:02}")
        types = f"instance_types: [{TYPES[number % len(TYPES)]}], max_capacity"
        pipeline.push(edited.replace("max_capacity", types))
        watched.server.calls.clear()
        with scaling(scaler):
            planned = pipeline.plan()
            assert planned.returncode == 0, planned.stderr
            applied = pipeline.apply()
        assert applied.returncode == 0, applied.stderr
        assert scaler.live() == scaler.last
        assert watched.types() == {TYPES[number % len(TYPES)]}
        replans += json.loads(applied.stdout)["replans"]
        calls = watched.server.calls.calls(action="ModifyFleet")
        assert [c for c in calls if "Terraform" in c.user_agent] == []
        without = [c for c in calls if not any("TargetCapacity" in p for p in c.parameters)]
        assert len(without) == fleets
        edits += len(without)
    drift = pipeline.reconciler("ci", "drift", "--dir", "terraform", "--output", "json")
    kinds = {resource["kind"] for resource in json.loads(drift.stdout)["resources"]}
    assert kinds <= {"capacity-outside"}, drift.stdout
    closing_lines.append(
        f"{edits} changes of types in {number + 1} applies, {scaler.moves} targets set meanwhile"
        f" in {scaler.rounds} rounds: {replans} plans made again, no capacity sent along by"
        " Terraform, no target rolled back"
    )
