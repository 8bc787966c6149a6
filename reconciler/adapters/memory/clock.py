"""A clock that only moves when told to, and what is due at which time."""

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count


class ManualClock:
    """The Clock port in virtual time: waiting moves it, and runs what comes due on the way.

    Args:
        start: The first `now`, aware UTC.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 31, 12, tzinfo=UTC)) -> None:
        self._start = start
        self._now = start
        self._numbers = count()
        self._timers: list[tuple[datetime, int, Callable[[], object]]] = []
        self._skew = timedelta()

    def now(self) -> datetime:
        """The wall clock, which `jump` sets wrong."""
        return self._now + self._skew

    def monotonic_seconds(self) -> float:
        """Seconds since the start; jumps do not show."""
        return (self._now - self._start).total_seconds()

    def wait_seconds(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.advance(seconds)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or, negative, back; nothing comes due by it."""
        self._skew += timedelta(seconds=seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> None:
        """Have `call` run when so much time has passed; equal times in order of asking."""
        due = self._now + timedelta(seconds=max(0.0, seconds))
        heapq.heappush(self._timers, (due, next(self._numbers), call))

    def next_due_seconds(self) -> float | None:
        """How far off the next call is; None when nothing is planned."""
        if not self._timers:
            return None
        return (self._timers[0][0] - self._now).total_seconds()

    def advance(self, seconds: float) -> None:
        """Move on, running everything that comes due in its order."""
        end = self._now + timedelta(seconds=max(0.0, seconds))
        while self._timers and self._timers[0][0] <= end:
            due, _, call = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            call()
        self._now = end
