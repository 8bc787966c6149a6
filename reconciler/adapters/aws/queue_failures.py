"""Keeps track of the calls for the interruption queue that fail now."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from reconciler.model.errors import PortError

RECEIVE: Final = "ReceiveMessage"
EXTEND: Final = "ChangeMessageVisibility"
DELETE: Final = "DeleteMessage"
COMPLETE: Final = "CompleteLifecycleAction"
PASSED_SECONDS: Final = 120.0
"""After this time without a failure a call other than `RECEIVE`, which is sent all the time, works
again. A message that could not be deleted or extended comes again after 30 s, and so would the
failure; if none does, there may be nothing left to delete."""


@dataclass(frozen=True, slots=True)
class _Failure:
    error: PortError
    at: float


class QueueFailures:
    """Reports when a call begins to fail, and when all of them work again; thread-safe.

    Args:
        reported: Called with the error of a call that works no more, or fails with another kind of
            error now; with that of another one that still does not when it works again; and with
            None when all work.
        monotonic: A clock that never jumps.
    """

    def __init__(
        self,
        reported: Callable[[PortError | None], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reported = reported
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._failing: dict[str, _Failure] = {}

    def failed(self, call: str, error: PortError) -> None:
        """Note that a call failed."""
        with self._lock:
            before = self._failing.get(call)
            self._failing[call] = _Failure(error, self._monotonic())
            if before is None or type(before.error) is not type(error):
                self._reported(error)

    def worked(self, call: str) -> None:
        """Note that a call succeeded."""
        with self._lock:
            if call in self._failing:
                self._end([call])

    def pass_by(self) -> None:
        """End what has not failed again for a while."""
        with self._lock:
            long_ago = self._monotonic() - PASSED_SECONDS
            old = [
                c for c, failure in self._failing.items() if c != RECEIVE and failure.at < long_ago
            ]
            if old:
                self._end(old)

    def end(self) -> None:
        """End all: nothing is asked of the queue any more, or another one is read."""
        with self._lock:
            if self._failing:
                self._end([*self._failing])

    def _end(self, calls: list[str]) -> None:
        for call in calls:
            del self._failing[call]
        self._reported(next((failure.error for failure in self._failing.values()), None))
