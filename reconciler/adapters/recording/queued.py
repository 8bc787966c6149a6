"""A queue of lines of recorded demand, which a thread writes."""

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime
from typing import Final

from reconciler.model.errors import PortError, Unavailable
from reconciler.telemetry.threads import log_bug

QUEUE_MAX: Final = 16
CLOSE_SECONDS: Final = 5.0
UNWRITTEN_BYTES_MAX: Final = 64 << 20
"""The limit of lines in memory while they cannot be saved."""
LINES_LOST: Final = "lines of some hours are lost; the record is complete again from tomorrow on"
"""The message when more lines are queued."""


class QueuedLog(ABC):
    """Writes lines in a thread of its own, so that no cycle waits; subclasses define where.

    Args:
        failed: Called with the reason if lines could not be written; the loop continues.
        idle_seconds: After how long without lines `rest` is called; None for never.
    """

    def __init__(
        self, failed: Callable[[PortError], None], idle_seconds: float | None = None
    ) -> None:
        self._failed = failed
        self._idle_seconds = idle_seconds
        self._queue: queue.Queue[tuple[datetime, bytes] | None] = queue.Queue(QUEUE_MAX)
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    def append(self, at: datetime, lines: bytes) -> bool:
        """See `DemandLog`."""
        try:
            self._queue.put_nowait((at, lines))
        except queue.Full:
            return False
        return True

    def close(self) -> None:
        """Write what is queued, for a few seconds at most."""
        try:
            self._queue.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            return
        self._thread.join(CLOSE_SECONDS)

    @abstractmethod
    def write(self, at: datetime, lines: bytes) -> None:
        """Save lines of this time's day.

        Raises:
            PortError: They cannot be saved.
        """

    @abstractmethod
    def rest(self) -> None:
        """Write collected lines; called after a while without lines, or when the log is closed.

        Raises:
            PortError: They cannot be saved.
        """

    def _run(self) -> None:
        while self._next():
            pass
        self._reporting_errors(self.rest)

    def _next(self) -> bool:
        try:
            waiting = self._queue.get(timeout=self._idle_seconds)
        except queue.Empty:
            self._reporting_errors(self.rest)
            return True
        if waiting is None:
            return False
        at, lines = waiting
        self._reporting_errors(lambda: self.write(at, lines))
        return True

    def _reporting_errors(self, act: Callable[[], None]) -> None:
        """Act, and report an error."""
        try:
            act()
        except PortError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - later lines can be written all the same
            log_bug()
            what = f"lines are lost by a bug: {type(error).__name__}"
            self._failed(Unavailable("recording", what))
