"""How the program ends: by itself within its time, or else at once."""

import os
import threading
from collections.abc import Callable

import structlog

from reconciler.adapters.system_clock import Stopped
from reconciler.telemetry import events

STOP_SECONDS = 1.6
"""From the signal; a call that hangs (EC2's read timeout is 15 s) is not waited for: whatever it
does, the next start observes."""
EXIT_INTERRUPTED = 130


def exit_code_of(stopped: Stopped, interrupt: int = 2) -> int:
    """0 after SIGTERM and without a signal, 130 after SIGINT."""
    return EXIT_INTERRUPTED if stopped.number == interrupt else 0


class StopDeadline:
    """Ends the process when stopping takes too long.

    Args:
        exit_code: With which code.
        seconds: How long stopping may take.
    """

    def __init__(self, exit_code: Callable[[], int], seconds: float = STOP_SECONDS) -> None:
        self._exit_code = exit_code
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._seconds = seconds

    def arm(self) -> None:
        """The time begins."""
        self._timer.start()

    def disarm(self) -> None:
        """Everything ended by itself."""
        self._timer.cancel()

    def _end(self) -> None:
        structlog.get_logger().warning(
            events.STOP_FORCED, reason=f"a call did not end within {self._seconds} s"
        )
        os._exit(self._exit_code())
