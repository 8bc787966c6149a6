"""Several reporters as one: what one of them does is no concern of the others."""

import pytest
from structlog.testing import capture_logs

from reconciler.loops.reconcile_loop import CycleReport
from reconciler.loops.reporters.combined import GatedReporter, Reporters
from reconciler.model.errors import InvariantViolated, Unavailable
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from tests.builders import make_pod
from tests.unit.loops.scene import Recorder, Scene


class Broken(Recorder):
    """A reporter that fails on every plan and at the end of every cycle."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        raise self.error

    def cycle_ended(self, report: CycleReport) -> None:
        raise self.error


def reported(*reporters: Recorder | GatedReporter) -> Scene:
    """A loop in which a pod waits, with these reporters."""
    scene = Scene()
    scene.world.add_pod(make_pod("waiting", cpu=1))
    scene.loop.reporter = Reporters(reporters, scene.world.clock.monotonic_seconds)
    return scene


@pytest.mark.parametrize("error", [ValueError("odd"), Unavailable("slack", "no answer")])
def test_reporter_that_fails_keeps_no_pod_waiting(error: Exception) -> None:
    """A report of drift must not decide whether nodes are bought."""
    heard = Recorder()
    scene = reported(Broken(error), heard)
    scene.run(3)
    assert heard.outcomes
    assert len(heard.reports) == 3
    assert all(report.error is None for report in heard.reports)


def test_failure_of_a_reporter_is_logged_once_in_a_while_and_by_name() -> None:
    """A traceback in every cycle would drown the log."""
    scene = reported(GatedReporter(Broken(ValueError("odd")), lambda: True))
    with capture_logs() as logs:
        scene.run(3)
    (entry,) = [log for log in logs if log["event"] == "report_failed"]
    assert (entry["reporter"], entry["log_level"]) == ("Broken", "error")
    assert "ValueError: odd" in entry["reason"]


def test_broken_law_still_ends_the_loop() -> None:
    """Going on with what must not be is worse than a restart."""
    scene = reported(Broken(InvariantViolated("reporter", "impossible")))
    with pytest.raises(InvariantViolated):
        scene.run(1)
