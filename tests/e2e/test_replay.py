"""What the loop did on a real control plane, against a replay of the demand that it recorded.

`make replayed-hour` takes an hour and draws the plot of docs/simulate.md; without it it is minutes.
"""

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kubernetes import KubernetesCluster, Transport, connect
from reconciler.cli.main import run
from reconciler.sandbox.control_plane.plane import ControlPlane
from reconciler.simulation.plots import recorded_targets
from tests.e2e.plotting import VARIABLE
from tests.e2e.promises import Tally
from tests.e2e.sandbox import OnRealCluster
from tests.e2e.scene import FleetShape, Scene
from tests.e2e.varied_work import varied_work
from tests.full_proofs import rounds

pytestmark = [pytest.mark.nightly]

SECONDS = rounds(240, 3600)
SEED = 1
LAUNCH_SECONDS, JOIN_SECONDS = 5.0, 10.0
CHANCES = (
    *("--launch-seconds", f"{LAUNCH_SECONDS}", "--join-seconds", f"{JOIN_SECONDS}"),
    *("--interruptions-per-hour", "0", "--capacity-errors-per-day", "0"),
    *("--sleep-seconds", "10", "--calm-seconds", "1"),
)
"""As the sandbox is: no spot instance is taken back, and nothing is short."""
OVERLAP_LEAST = 0.9


@pytest.fixture
def sandbox(plane: ControlPlane) -> Iterator[OnRealCluster]:
    """AWS whose nodes take as long as the replay is told."""
    with OnRealCluster(plane, launch_seconds=LAUNCH_SECONDS, join_seconds=JOIN_SECONDS) as running:
        yield running


@pytest.mark.timeout(SECONDS + 1200, func_only=True)
def test_replay_of_recorded_demand_has_the_targets_that_there_were(
    plane: ControlPlane,
    sandbox: OnRealCluster,
    api: Transport,
    tmp_path: Path,
    tally: Tally,
    closing_lines: list[str],
) -> None:
    """A simulation that does not agree with what happened is no ground for a decision."""
    records = tmp_path / "records"
    records.mkdir()
    cluster = KubernetesCluster(connect(str(plane.kubeconfig)))
    scene = Scene(sandbox, api, cluster, tmp_path, "replay", tally)
    try:
        scene.open(
            *(FleetShape(size=size, most=60) for size in ("small", "medium")),
            config=f"scale_in: {{idle_threshold: 1m}}\nrecording: {{path: {records}}}",
        )
        _play(scene)
        assert scene.program is not None
        scene.program.end()  # it writes down what it still has
    finally:
        scene.close()
        cluster.close()
    replayed = _replayed(tmp_path, records)
    agreed = replayed["recorded"]
    _plot(replayed)
    hours = {
        what: sum(fleet[f"node_hours_{what}"] for fleet in agreed["fleets"])
        for what in ("recorded", "simulated", "apart")
    }
    closing_lines.append(
        f"{SECONDS / 60:.0f} minutes on a real control plane, recorded and replayed:"
        f" {replayed['pods']:,} pods, {hours['recorded']:.2f} node-hours recorded,"
        f" {hours['simulated']:.2f} replayed, {agreed['overlap']:.1%} of both the same at the"
        f" same time"
    )
    assert {fleet["fleet"] for fleet in agreed["fleets"]} == {"replay-small", "replay-medium"}
    assert hours["recorded"] > SECONDS / 3600
    assert agreed["overlap"] >= OVERLAP_LEAST


def _play(scene: Scene) -> None:
    """Ask for everything when it is due."""
    began = time.monotonic()
    waits = threading.Event()
    for change in varied_work(SECONDS, SEED):
        waits.wait(max(0.0, began + change.at_seconds - time.monotonic()))
        if change.new:
            scene.create(change.kind, change.name, change.spec)
        else:
            scene.patch(change.kind, change.name, change.spec)
    waits.wait(max(0.0, began + SECONDS - time.monotonic()))


def _replayed(folder: Path, records: Path) -> Any:
    """The figures of the simulation of what was recorded."""
    demand, out = folder / "demand.jsonl.gz", folder / "report"
    assert run(["record", "--recording", str(records), "--days", "2", "--out", str(demand)]) == 0
    config = ["--config", str(folder / "sectors.yaml"), "--demand", str(demand)]
    assert run(["simulate", *config, *CHANCES, "--out", str(out)]) == 0
    return json.loads((out / "report.json").read_text())["runs"][0]


def _plot(replayed: Any) -> None:
    folder = os.environ.get(VARIABLE, "")  # noqa: TID251 - a switch of the tests alone
    if folder:
        drawn = recorded_targets(replayed).replace("currentColor", "#6e7781")
        (Path(folder) / "replayed-hour.svg").write_text(drawn + "\n", encoding="utf-8")
