"""How the program ends: by itself within its time, or else at once."""

import os
import threading
from collections.abc import Callable

import structlog

from reconciler.adapters.system_clock import Stopped
from reconciler.telemetry import events

INTERRUPTED_SECONDS = 1.6
"""From SIGINT, which a person sends, who waits; a call that hangs (EC2's read timeout is 15 s) is
not waited for: whatever it does, the next start observes."""
TERMINATED_SECONDS = 10.0
"""From SIGTERM: the kubelet gives 30 s, and who ends in order on a busy machine lets go of the
Lease, which would otherwise keep the next leader waiting."""
EXIT_INTERRUPTED = 130


def exit_code_of(stopped: Stopped, interrupt: int = 2) -> int:
    """0 after SIGTERM and without a signal, 130 after SIGINT."""
    return EXIT_INTERRUPTED if stopped.number == interrupt else 0


def stop_seconds_of(stopped: Stopped, interrupt: int = 2) -> float:
    """How long stopping may take after this signal."""
    return INTERRUPTED_SECONDS if stopped.number == interrupt else TERMINATED_SECONDS


class StopDeadline:
    """Ends the process when stopping takes too long.

    Args:
        exit_code: With which code.
        seconds: How long stopping may take, asked when the time begins.
    """

    def __init__(self, exit_code: Callable[[], int], seconds: Callable[[], float]) -> None:
        self._exit_code = exit_code
        self._seconds = seconds
        self._over = threading.Event()

    def arm(self) -> None:
        """The time begins."""
        threading.Thread(target=self._wait, name="stop-deadline", daemon=True).start()

    def disarm(self) -> None:
        """Everything ended by itself."""
        self._over.set()

    def _wait(self) -> None:
        seconds = self._seconds()
        if self._over.wait(seconds):
            return
        structlog.get_logger().warning(
            events.STOP_FORCED, reason=f"a call did not end within {seconds} s"
        )
        os._exit(self._exit_code())
