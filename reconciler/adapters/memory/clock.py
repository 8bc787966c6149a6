"""A clock that is advanced by its owner, and that runs calls scheduled for given times."""

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count


class ManualClock:
    """The Clock port in virtual time: waiting moves it, and runs the calls that become due.

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
        """Return the wall clock, which `jump` sets wrong."""
        return self._now + self._skew

    def monotonic_seconds(self) -> float:
        """Return the seconds since the start, without jumps."""
        return (self._now - self._start).total_seconds()

    def wait_seconds(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.advance(seconds)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or, negative, back; no call becomes due by it."""
        self._skew += timedelta(seconds=seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> None:
        """Run `call` after this time; calls at equal times run in the order of registration."""
        due = self._now + timedelta(seconds=max(0.0, seconds))
        heapq.heappush(self._timers, (due, next(self._numbers), call))

    def next_due_seconds(self) -> float | None:
        """Return the time until the next call; None when none is planned."""
        if not self._timers:
            return None
        return (self._timers[0][0] - self._now).total_seconds()

    def advance(self, seconds: float) -> None:
        """Move on, and run all due calls in their order."""
        end = self._now + timedelta(seconds=max(0.0, seconds))
        while self._timers and self._timers[0][0] <= end:
            due, _, call = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            call()
        self._now = end
