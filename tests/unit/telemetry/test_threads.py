"""What the log says of a thread that a bug ended."""

import threading

from structlog.testing import capture_logs

from reconciler.telemetry.threads import ends_of_threads_logged


def test_thread_that_ends_by_a_bug_is_one_line_with_its_traceback() -> None:
    """Python prints it to stderr, in many lines and with whatever secret the message holds."""

    def broken() -> None:
        raise RuntimeError("a bug")

    before = threading.excepthook
    with capture_logs() as logs, ends_of_threads_logged():
        thread = threading.Thread(target=broken, name="slack")
        thread.start()
        thread.join()
    (line,) = logs
    assert (line["event"], line["thread"], line["log_level"]) == ("thread_ended", "slack", "error")
    assert str(line["exc_info"][1]) == "a bug"
    assert threading.excepthook is before
