"""Bugs in threads that work beside the cycles: they are logged, and the thread goes on."""

import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from reconciler.adapters.aws.background_reads import BackgroundReads
from reconciler.adapters.recording.queued import QueuedLog
from reconciler.model.errors import PortError, Unavailable
from reconciler.model.ids import Region

HOME = Region("us-west-2")
DAY = datetime(2026, 3, 10, 12, tzinfo=UTC)


def fails(error: Exception) -> Callable[[], object]:
    """A read that meets an error."""

    def fetch() -> object:
        raise error

    return fetch


@pytest.mark.parametrize(
    ("error", "logged"), [(RuntimeError("a bug"), 1), (Unavailable("ec2", "no answer"), 0)]
)
def test_bug_of_a_read_in_the_background_is_logged(error: Exception, logged: int) -> None:
    """It went to stderr, as lines that no log reader knows; an outage is the next cycle's."""
    background, done = BackgroundReads("ec2"), threading.Event()
    with capture_logs() as logs:
        background.begin(HOME, fails(error))
        background.close()
        background.begin(HOME, done.set)
        background.close()
    assert done.is_set()
    assert [log["event"] for log in logs] == ["thread_failed"] * logged


class Buggy(QueuedLog):
    """A log with a bug that the first lines meet."""

    written = b""

    def write(self, at: datetime, lines: bytes) -> None:
        """See `QueuedLog`."""
        if lines == b"one\n":
            raise RuntimeError("a bug")
        self.written += lines

    def rest(self) -> None:
        """See `QueuedLog`."""


def test_bug_with_some_lines_of_a_recording_does_not_end_it() -> None:
    """A recording that silently ended is found when it is needed, months later."""
    failed: list[PortError] = []
    with capture_logs() as logs, closing(Buggy(failed.append)) as log:
        assert log.append(DAY, b"one\n")
        assert log.append(DAY, b"two\n")
    assert log.written == b"two\n"
    (line,) = logs
    assert (line["event"], line["thread"]) == ("thread_failed", "recording")
    assert [str(port_error) for port_error in failed] == [
        "recording: lines are lost by a bug: RuntimeError"
    ]
