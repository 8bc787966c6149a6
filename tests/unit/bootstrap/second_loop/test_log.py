"""What the second loop says of its turns."""

from structlog.testing import capture_logs

from reconciler.bootstrap.second_loop.log import GitopsLog
from reconciler.gitops.repository.status import GitopsReport
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
