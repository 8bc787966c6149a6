"""`ci apply` killed at each of its stages: the state is whole, and the next run completes."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.faults.aws import AwsFaults
from tests.full_proofs import rounds
from tests.sandbox.gitops.pipeline_on_aws import (
    BUCKET,
    KEY,
    REGION,
    Pipeline,
    config,
    empty_bucket,
    fleet,
    new_pipeline,
    scale,
    target,
)
from tests.sandbox.gitops.watched_account import LOCK, Stage, Watched, watched_account
from tests.terraform.needs import needs_provider, real_terraform
from tests.waiting import until

pytestmark = real_terraform
DEADLINE_SECONDS = 600
How = Literal["SIGTERM", "SIGKILL", "SIGKILL of all"]


@pytest.fixture(scope="module")
def emulated() -> Iterator[Watched]:
    """One emulated AWS for this module, with a bucket for state."""
    with watched_account() as made:
        yield made


@pytest.fixture
def watched(emulated: Watched) -> Iterator[Watched]:
    """The account, with neither state nor living fleets."""
    yield emulated
    empty_bucket(emulated)
    with closing(emulated.client("ec2")) as ec2:
        living = [fleet["FleetId"] for fleet in emulated.living()]
        if living:
            ec2.delete_fleets(FleetIds=living, TerminateInstances=True)
        for template in ec2.describe_launch_templates()["LaunchTemplates"]:
            ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])


@pytest.fixture
def pipeline(tmp_path: Path, watched: Watched) -> Pipeline:
    """A config repository with nothing rendered yet."""
    return new_pipeline(tmp_path, watched)


def killed(pipeline: Pipeline, watched: Watched, stage: Stage, how: How) -> int:
    """An apply that is ended once it has come to a stage; its exit code."""
    watched.server.calls.clear()
    with subprocess.Popen(
        [
            *(sys.executable, "-c", "from reconciler.cli.main import main; main()"),
            *("ci", "apply", "--dir", "terraform", "--plan", "../plan"),
        ],
        cwd=pipeline.work,
        env=watched.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        reached = partial(until, seconds=DEADLINE_SECONDS, look_seconds=0.01)
        reached(stage, lambda: watched.reached(stage) or process.poll() is not None)
        if how == "SIGKILL of all":
            os.killpg(process.pid, signal.SIGKILL)
        elif process.poll() is None:
            process.send_signal(signal.SIGTERM if how == "SIGTERM" else signal.SIGKILL)
        code = process.wait(timeout=DEADLINE_SECONDS)
        reached(
            "Terraform, which may go on without its parent, ends", lambda: not _alive(process.pid)
        )
    return code


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


STAGES: tuple[Stage, ...] = ("start", "check", "locked", "creating", "written")
WAYS: tuple[How, ...] = ("SIGTERM", "SIGKILL", "SIGKILL of all")
EVERY = [(stage, how) for stage in STAGES for how in WAYS]
BOUNDED: list[tuple[Stage, How]] = [
    ("creating", "SIGTERM"),
    ("creating", "SIGKILL"),
    ("creating", "SIGKILL of all"),
]


@needs_provider
@pytest.mark.parametrize(
    ("stage", "how"),
    [
        pytest.param(*each, marks=() if each == BOUNDED[-1] else pytest.mark.nightly)
        for each in (EVERY if rounds(0, 1) else BOUNDED)
    ],
)
def test_apply_killed_at_any_stage_is_completed_by_the_next_run(
    pipeline: Pipeline, watched: Watched, stage: Stage, how: How, closing_lines: list[str]
) -> None:
    """A job that is cancelled, or a runner that dies, must not leave fleets nobody knows of."""
    pipeline.push(config(watched, team="kill", sizes="small medium"))
    assert pipeline.plan().returncode == 0
    code = killed(pipeline, watched, stage, how)
    state, lock = watched.body(KEY), watched.body(LOCK)
    assert state is None or state["version"] == 4
    unlocked = "no lock left"
    if lock is not None:
        assert how == "SIGKILL of all"
        # A plan takes no lock; it is the apply that must not begin.
        assert pipeline.plan().returncode == 0
        refused = pipeline.reconciler(
            "ci", "apply", "--dir", "terraform", "--plan", "../plan", "--lock-timeout", "0"
        )
        assert refused.returncode == 1
        assert f"locked by {lock['Who'].split()[0]}" in refused.stderr, refused.stderr
        (told_id,) = re.findall(r"ci unlock --dir DIR (\S+)\)", refused.stderr)
        assert told_id == lock["ID"]
        done = pipeline.reconciler("ci", "unlock", "--dir", "terraform", told_id)
        assert done.returncode == 0, done.stderr
        unlocked = "lock of the dead run named with its owner, then taken away"
    known = len((state or {}).get("resources", []))
    made = watched.names()
    planned = pipeline.plan()
    assert planned.returncode == 0, planned.stderr
    applied = pipeline.apply()
    assert applied.returncode == 0, applied.stderr
    assert watched.names() == ["primary-medium", "primary-small"]
    assert watched.body(LOCK) is None
    again = pipeline.plan()
    assert json.loads(again.stdout)["changes"] is False, again.stdout
    closing_lines.append(
        f"{how} at {stage}: exit {code}, {unlocked}; {known} resources in the state and"
        f" {len(made)} fleets in EC2 then; the next run completed"
    )


@pytest.mark.nightly
@needs_provider
def test_fleet_that_is_left_behind_is_imported_beside_a_drain_while_capacity_moves(
    pipeline: Pipeline, watched: Watched
) -> None:
    """Each plan was fine, and its apply asked for another plan, without end."""
    pipeline.deploy(config(watched, team="left", sizes="small medium large"))
    forget(watched, "primary-medium")
    ids = {each["FleetId"] for each in watched.living()}
    text = config(
        watched, team="left", sizes="small medium", extra="allow_destroy: [primary-large]\n"
    )
    pipeline.push(text.replace("OWNER", "other"))
    counts = json.loads(pipeline.plan().stdout)["counts"]
    assert (counts["delete"], counts["import"], "create" in counts) == (2, 2, False)
    scale(watched, fleet(watched, "left")["FleetId"], 3)
    applied = pipeline.apply()
    assert applied.returncode == 1
    assert applied.stderr.startswith("error: primary-large still has "), applied.stderr
    assert json.loads(applied.stdout)["replans"] == 1
    assert {each["FleetId"] for each in watched.living()} == ids
    for name in ("primary-small", "primary-medium"):
        assert {"Key": "owner", "Value": "other"} in fleet(watched, "left", name)["Tags"]
    assert target(watched, "left") == 3
    assert json.loads(pipeline.plan().stdout)["counts"] == {"delete": 2}


def forget(watched: Watched, name: str) -> None:
    """Take a fleet out of the state, as if the apply that made it had been killed."""
    state = watched.body(KEY)
    assert state is not None
    state["resources"] = [e for e in state["resources"] if name not in e.get("module", "")]
    state["serial"] += 1
    with closing(watched.client("s3")) as s3:
        s3.put_object(Bucket=BUCKET, Key=KEY, Body=json.dumps(state).encode())


@pytest.mark.nightly
@needs_provider
def test_fleet_that_cannot_be_made_is_named_and_the_next_run_makes_it(
    pipeline: Pipeline, watched: Watched
) -> None:
    """Half an apply must say which half, and need nothing but another run."""
    pipeline.push(config(watched, team="half", sizes="small medium large"))
    assert pipeline.plan().returncode == 0
    fault = {"fault": "error", "code": "FleetLimitExceeded", "actions": ["CreateFleet"], "count": 1}
    ControlClient(watched.url).put_faults(AwsFaults.model_validate({"calls": [fault]}))
    failed = pipeline.apply()
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1, failed.stderr
    found = re.search(
        r'1 failed: module\.fleets\.module\.fleet\["(primary-\w+)"\]\.aws_ec2_fleet\.this: .*'
        r"\(5 changes were carried out and are in the state; plan again for the rest\)",
        failed.stderr,
    )
    assert found is not None, failed.stderr
    assert found[1] not in watched.names()
    assert len(watched.names()) == 2
    stale = pipeline.apply()
    assert "serial" in stale.stderr
    planned = pipeline.plan()
    assert json.loads(planned.stdout)["counts"] == {"create": 1}, planned.stderr
    applied = pipeline.apply()
    assert applied.returncode == 0, applied.stderr
    assert len(watched.names()) == 3


@pytest.mark.nightly
@needs_provider
def test_drift_tells_fleets_and_capacity_outside_the_config(
    pipeline: Pipeline, watched: Watched
) -> None:
    """A fleet that somebody scaled by hand past its limits costs money until somebody looks."""
    text = config(watched, team="drift", sizes="small medium")
    pipeline.deploy(text)
    command = ("ci", "drift", "--dir", "terraform", "--output", "json")
    quiet = json.loads(pipeline.reconciler(*command).stdout)
    assert (quiet["drift"], quiet["notes"]) == (False, [])
    with closing(watched.client("ec2")) as ec2:
        ids = {
            {t["Key"]: t["Value"] for t in f["Tags"]}["fleet"]: f["FleetId"]
            for f in watched.living()
        }
        ec2.modify_fleet(
            FleetId=ids["primary-small"],
            ExcessCapacityTerminationPolicy="no-termination",
            TargetCapacitySpecification={"TotalTargetCapacity": 11},
        )
        ec2.delete_fleets(FleetIds=[ids["primary-medium"]], TerminateInstances=False)
        stranger = [
            {"Key": "cluster", "Value": "drift-cluster"},
            {"Key": "fleet", "Value": "primary-old"},
        ]
        described = ec2.describe_fleets(FleetIds=[ids["primary-small"]])["Fleets"][0]
        template = described["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]
        ec2.create_fleet(
            Type="maintain",
            LaunchTemplateConfigs=[
                {
                    "LaunchTemplateSpecification": {
                        "LaunchTemplateId": template["LaunchTemplateId"],
                        "Version": "$Latest",
                    },
                    "Overrides": [{"InstanceType": "r5.xlarge"}],
                }
            ],
            TargetCapacitySpecification={
                "TotalTargetCapacity": 0,
                "DefaultTargetCapacityType": "spot",
            },
            TagSpecifications=[{"ResourceType": "fleet", "Tags": stranger}],
        )
    found = json.loads(pipeline.reconciler(*command).stdout)
    kinds = {
        (resource["kind"], resource["fleet"]): resource["detail"] for resource in found["resources"]
    }
    assert kinds["capacity-outside", "primary-small"] == (
        "target capacity 11 is above max_capacity 10"
    )
    assert kinds["fleet-missing", "primary-medium"] == "not in EC2"
    assert kinds["fleet-extra", "primary-old"] == f"in {REGION}, not in the config"
    (pipeline.work / "sectors.yaml").write_text("sectors: {a: {kind: nosuch}}\n")
    faulty = pipeline.reconciler(*command)
    assert faulty.returncode == 0, faulty.stderr
    (note,) = json.loads(faulty.stdout)["notes"]
    assert "the config has faults" in note
    assert "sectors.yaml:1:" in note
