"""`reconciler record` beside a cluster: what it runs, and what comes and goes meanwhile."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.model.demand import PodDemand
from reconciler.records.demand import read_demand
from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.world import DEADLINE_SECONDS, World
from tests.waiting import until

pytestmark = pytest.mark.sandbox


def pods_in(path: Path) -> dict[str, PodDemand]:
    """The pods that a file tells of by now, by the name of their owner or their own."""
    if not path.exists():
        return {}
    with path.open("rb") as stream:
        lines = read_demand(stream, str(path)).lines
    return {line.id: line for line in lines if isinstance(line, PodDemand)}


def test_pods_are_written_down_as_they_come_and_go(
    sandbox: Sandbox, world: World, tmp_path: Path
) -> None:
    """Who wants to know what a week costs would have to install the loop first."""
    world.add_pods(["before"], cpu="500m")
    out = tmp_path / "demand.jsonl.gz"
    command = [sys.executable, "-m", "reconciler", "record", "--out", str(out)]
    inherited = os.environ  # noqa: TID251 - a child inherits ours
    with subprocess.Popen(command, env={**inherited, **sandbox.environment()}) as recorder:
        try:
            until("one pod is told of", lambda: len(pods_in(out)) == 1 or None)
            world.add_pods(["meanwhile"], cpu="250m")
            until("two pods are told of", lambda: len(pods_in(out)) == 2 or None)
            world.remove_pods()
            until(
                "both have ended",
                lambda: all(pod.until is not None for pod in pods_in(out).values()) or None,
            )
        finally:
            recorder.send_signal(signal.SIGINT)
            assert recorder.wait(DEADLINE_SECONDS) == 0
    asked = sorted(pod.spec.requests["cpu"] for pod in pods_in(out).values())
    assert asked == [250, 500]
