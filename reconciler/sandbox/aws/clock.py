"""Time of the emulated EC2: the machine's own, or one that a test moves by hand."""

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """The source of time of the emulated EC2."""

    def now(self) -> datetime:
        """Return the present moment, aware, UTC."""
        ...

    def seconds_until(self, moment: datetime) -> float | None:
        """Return how long to wait for `moment`; None when waiting does not reach it."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present moment, aware, UTC."""
        return datetime.now(tz=UTC)  # noqa: TID251 - this is the Clock the rule asks for

    def seconds_until(self, moment: datetime) -> float | None:
        """Return the seconds from now to `moment`, never negative."""
        return max(0.0, (moment - self.now()).total_seconds())


class ManualClock:
    """A clock that moves only by `advance`; requests then see everything that became due."""

    def __init__(self, start: datetime = datetime(2026, 1, 31, 12, tzinfo=UTC)) -> None:
        self._now = start

    def now(self) -> datetime:
        """Return the present moment, aware, UTC."""
        return self._now

    def seconds_until(self, moment: datetime) -> float | None:
        """Return 0 for what is due, else None: only `advance` reaches a later moment."""
        return 0.0 if moment <= self._now else None

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self._now += timedelta(seconds=seconds)
