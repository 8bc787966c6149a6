"""Logs a bug in a thread: one line, with its traceback."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from reconciler.telemetry import events


def log_bug() -> None:
    """Log the exception that is being handled, with the name of this thread, which continues."""
    structlog.get_logger().error(
        events.THREAD_FAILED, thread=threading.current_thread().name, exc_info=True
    )


@contextmanager
def ends_of_threads_logged() -> Iterator[None]:
    """Log exceptions that end threads during the block; stderr would show them unmasked."""

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
