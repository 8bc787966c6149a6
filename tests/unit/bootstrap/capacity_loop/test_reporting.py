"""What the parts of the capacity loop that report cannot do, in the log."""

from structlog.testing import capture_logs

from reconciler.bootstrap.capacity_loop.reporting import failures_logged
from reconciler.model.errors import Forbidden, Unavailable


def test_failure_that_lasts_is_said_once_in_two_minutes() -> None:
    """A full disk was 20 lines a second: as many as there are changes of pods."""
    seconds = 0.0
    with capture_logs() as events:
        log = failures_logged("recording_failed", lambda: seconds)
        for number in range(5):
            log(Unavailable(f"recording {number}", "no space left on device"))
        log(Forbidden("recording", "no"))
        seconds = 121.0
        log(Unavailable("recording", "no space left on device"))
    assert [event["reason"] for event in events if event["log_level"] == "warning"] == [
        "recording 0: no space left on device",
        "recording: no",
        "recording: no space left on device",
    ]
    assert len([event for event in events if event["log_level"] == "debug"]) == 4
