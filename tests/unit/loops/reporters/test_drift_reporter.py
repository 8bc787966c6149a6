"""Drift is reported once per change."""

from structlog.testing import capture_logs

from reconciler.gitops.drift.live import LiveDrift
from reconciler.loops.reporters.drift_reporter import DriftReporter
from reconciler.model.ids import Region
from reconciler.model.plan import Plan
from reconciler.model.snapshot import CloudState, Snapshot
from tests.builders import HOME, NOW
from tests.unit.loops.reporters.reported import FREE

AWAY = Region("us-east-1")
PLAN = Plan(at=NOW, cluster="analytics", home_region=HOME, cost=FREE)


def missing(fleet: str, region: Region = HOME) -> LiveDrift:
    """A fleet that is not there."""
    return LiveDrift(fleet=fleet, region=region, kind="fleet-missing", detail="not in EC2")


class Scene:
    """A reporter, what it compares with, and what it sent."""

    def __init__(self) -> None:
        self.found: tuple[LiveDrift, ...] = ()
        self.shown: list[tuple[LiveDrift, ...]] = []
        self.told: list[str] = []
        self.reporter = DriftReporter(lambda _: self.found, self.shown.append, self.told.append)

    def cycle(self, *found: LiveDrift, silent: frozenset[Region] = frozenset()) -> None:
        """One cycle that sees this."""
        self.found = found
        cloud = CloudState(regions=frozenset({HOME}), silent=silent)
        self.reporter.plan_made(Snapshot(at=NOW, cloud=cloud), PLAN)


def test_drift_is_reported_when_it_begins_and_when_it_ends() -> None:
    """A message a cycle would be muted within the hour."""
    scene = Scene()
    with capture_logs() as logs:
        for _ in range(3):
            scene.cycle(missing("a"))
        scene.cycle()
        scene.cycle()
    assert [entry["event"] for entry in logs] == ["fleet_drift_found", "fleet_drift_ended"]
    assert len(scene.told) == 2
    assert scene.shown == [(missing("a"),), ()]


def test_region_that_falls_silent_ends_nothing() -> None:
    """No answer is no proof that somebody fixed it."""
    scene = Scene()
    scene.cycle(missing("a", AWAY))
    scene.cycle(silent=frozenset({AWAY}))
    assert len(scene.told) == 1


def test_drift_of_a_region_that_the_config_no_longer_names_ends() -> None:
    """It would stay on the status page until the program is started again."""
    scene = Scene()
    scene.cycle(missing("a", AWAY))
    scene.cycle()
    assert scene.shown[-1] == ()


def test_cycle_without_ec2_says_nothing() -> None:
    """Offline there is nothing to compare with."""
    scene = Scene()
    scene.found = (missing("a"),)
    scene.reporter.plan_made(Snapshot(at=NOW), PLAN)
    assert scene.told == []


def test_many_changes_are_one_short_message() -> None:
    """A deleted account must not post a hundred lines."""
    scene = Scene()
    scene.cycle(*(missing(f"fleet-{n:03}") for n in range(100)))
    assert scene.told[0].count("\n") == 15
    assert "and 85 more" in scene.told[0]
