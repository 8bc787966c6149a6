"""A pool runs dry: how soon pods have capacity elsewhere, at the pauses of production."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import run
from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.world import Start, World
from tests.sandbox.faults.conftest import CONFIG, Put, empty

pytestmark = pytest.mark.sandbox

PROMISED_SECONDS = 5.0
"""From the error that EC2 shows to capacity elsewhere (issue 5)."""


@pytest.fixture
def preferred_fleet(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Path], str]:
    """Tells which fleet the nodes of the waiting pods would come from."""
    for name, value in sandbox.environment().items():
        monkeypatch.setenv(name, value)

    def look(config_file: Path) -> str:
        assert run(["plan", "--config", str(config_file), "--output", "json"]) == 0
        return str(json.loads(capsys.readouterr().out)["actions"][0]["fleet"])

    return look


def fleet_ids(world: World) -> Mapping[str, str]:
    """Ids of the fleets by name."""
    return {
        tag["Value"]: fleet["FleetId"]
        for fleet in world.ec2.describe_fleets()["Fleets"]
        for tag in fleet["Tags"]
        if tag["Key"] == "fleet"
    }


def first_error(world: World, fleet_id: str, since: datetime) -> datetime:
    """When EC2 first showed, from a moment on, that the fleet gets no capacity."""
    answer: Any = world.ec2.describe_fleet_history(FleetId=fleet_id, StartTime=since)
    records = answer["HistoryRecords"]
    errors: list[datetime] = [r["Timestamp"] for r in records if r["EventType"] == "error"]
    assert errors, "the fleet met no error"
    return min(errors)


def accepted_changes(sandbox: Sandbox, fleet_id: str) -> list[datetime]:
    """When EC2 took changes of a fleet's target."""
    calls = sandbox.control.calls(action="ModifyFleet")
    return [
        datetime.fromisoformat(call["at"])
        for call in calls
        if call["status"] == 200 and call["parameters"]["FleetId"] == fleet_id
    ]


def cycles_between(events: list[dict[str, Any]], begin: datetime, end: datetime) -> int:
    """How many cycles ended in a span of time."""
    moments = [datetime.fromisoformat(event["at"]) for event in events]
    return sum(1 for moment in moments if begin < moment.astimezone(UTC) < end)


def test_pods_have_capacity_elsewhere_within_seconds_of_the_error(
    program: Start,
    world: World,
    sandbox: Sandbox,
    put: Put,
    config_file: Path,
    preferred_fleet: Callable[[Path], str],
    closing_lines: list[str],
) -> None:
    """A shortage of the cheapest pool must not hold jobs up for the minutes it lasts."""
    # Whatever waited for the next look at everything would wait longer than the test may last.
    config_file.write_text(CONFIG.replace("sleep_interval: 1", "sleep_interval: 600"))
    world.add_pods([f"batch-{n}" for n in range(6)], cpu="1500m", seconds=1)
    dry = preferred_fleet(config_file)
    ids = fleet_ids(world)
    (other,) = set(ids) - {dry}
    began = datetime.now(UTC)  # noqa: TID251 - earlier tests may have left errors in the history
    put(aws={"capacity": [{"fleet": dry}]})
    running = program()
    world.until_pods(lambda phases: set(phases.values()) == {"Succeeded"})
    shown = first_error(world, ids[dry], began)
    moved = accepted_changes(sandbox, ids[other])[0]
    seconds = (moved - shown).total_seconds()
    cycles = cycles_between(running.events("cycle_ended"), shown, moved)
    closing_lines.append(
        f"capacity error: capacity elsewhere {seconds:.3f} s after the error was visible "
        f"(asked: at most {PROMISED_SECONDS:g} s), {cycles} cycles between"
    )
    assert seconds >= 0
    assert cycles <= 2
    assert running.events("fleet_unavailable")
    running.end()
    empty(world)
