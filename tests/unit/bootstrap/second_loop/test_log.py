"""What the second loop says of its turns."""

from structlog.testing import capture_logs

from reconciler.adapters.memory import ManualClock
from reconciler.bootstrap.second_loop.log import GitopsLog
from reconciler.gitops.repository.status import GitopsReport
from reconciler.model.errors import Forbidden
from reconciler.ports.repository import Commit, CommitId


def test_pattern_that_finds_nothing_is_said_once() -> None:
    """A mistyped pattern renders nothing, and without a warning the pipeline stays green."""
    log = GitopsLog()
    tip = Commit(id=CommitId("c" * 40), subject="First")
    report = GitopsReport(tip=tip, clusters=(), overlooked=("no sector config is called x*",))
    with capture_logs() as lines:
        for _ in range(3):
            log(report)
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("gitops_no_config", "warning")
    ]


def test_turn_that_goes_on_failing_is_said_every_two_minutes() -> None:
    """A token had expired for days, and the log had one line of it, long rotated away."""
    clock = ManualClock()
    log = GitopsLog(clock.monotonic_seconds)
    with capture_logs() as lines:
        for _ in range(9):
            log(Forbidden("https://git.example.com/infra.git", "401 Unauthorized"))
            clock.advance(30)
    assert [(line["event"], line["kind"]) for line in lines] == [
        ("gitops_turn_failed", "Forbidden")
    ] * 9
    assert [number for number, line in enumerate(lines) if line["log_level"] == "warning"] == [
        0,
        4,
        8,
    ]
