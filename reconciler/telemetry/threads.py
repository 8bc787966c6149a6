"""What a bug of ours in a thread leaves behind: one line of the log, with its traceback."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from reconciler.telemetry import events


def log_bug() -> None:
    """Log the exception that is being handled, and the name of this thread, which goes on."""
    structlog.get_logger().error(
        events.THREAD_FAILED, thread=threading.current_thread().name, exc_info=True
    )


@contextmanager
def ends_of_threads_logged() -> Iterator[None]:
    """Threads that end by an exception say so in the log, not on stderr, where nothing scrubs."""

    def log_end(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is None or issubclass(ended.exc_type, SystemExit):
            return
        structlog.get_logger().error(
            events.THREAD_ENDED,
            thread=ended.thread.name if ended.thread is not None else "",
            exc_info=(ended.exc_type, ended.exc_value, ended.exc_traceback),
        )

    before, threading.excepthook = threading.excepthook, log_end
    try:
        yield
    finally:
        threading.excepthook = before
