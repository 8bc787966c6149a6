"""Ends the program, by force when an orderly stop takes too long."""

import os
import signal
import threading
from collections.abc import Callable

import structlog

from reconciler.adapters.system_clock import Stopped
from reconciler.telemetry import events

INTERRUPTED_SECONDS = 1.6
"""Counted from SIGINT, sent by a person who waits. A call that hangs (EC2's read timeout is 15 s)
is not waited for: the next start observes its effect."""
TERMINATED_SECONDS = 10.0
"""Counted from SIGTERM. The kubelet gives 30 s, and an orderly stop on a busy machine releases the
Lease, which would otherwise keep the next leader waiting."""
EXIT_INTERRUPTED = 130


def exit_code_of(stopped: Stopped) -> int:
    """Return 0 after SIGTERM and without a signal, 130 after SIGINT."""
    return EXIT_INTERRUPTED if stopped.number == signal.SIGINT else 0


def stop_seconds_of(stopped: Stopped) -> float:
    """Return how long stopping may take after this signal."""
    return INTERRUPTED_SECONDS if stopped.number == signal.SIGINT else TERMINATED_SECONDS


class StopDeadline:
    """Ends the process when stopping takes too long.

    Args:
        exit_code: The exit code of a forced end.
        seconds: Returns how long stopping may take; called when the time starts.
    """

    def __init__(self, exit_code: Callable[[], int], seconds: Callable[[], float]) -> None:
        self._exit_code = exit_code
        self._seconds = seconds
        self._over = threading.Event()

    def arm(self) -> None:
        """Start the time."""
        threading.Thread(target=self._wait, name="stop-deadline", daemon=True).start()

    def disarm(self) -> None:
        """Cancel: everything ended by itself."""
        self._over.set()

    def _wait(self) -> None:
        seconds = self._seconds()
        if self._over.wait(seconds):
            return
        structlog.get_logger().warning(
            events.STOP_FORCED, reason=f"a call did not end within {seconds} s"
        )
        os._exit(self._exit_code())
