"""Time, so that no decision and no wait reads the machine's clock on its own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """A source of time."""

    def now(self) -> datetime:
        """The wall clock, aware UTC."""
        ...

    def monotonic_seconds(self) -> float:
        """A clock that never jumps, for durations and deadlines."""
        ...

    def wait_seconds(self, seconds: float) -> None:
        """Let time pass; returns early when the program is asked to stop."""
        ...


@dataclass(slots=True)
class RemoteClock:
    """A server's clock as its answers tell it; safe to use from any thread.

    Args:
        steady_seconds: A clock that never jumps, for the time since the last answer.
    """

    steady_seconds: Callable[[], float]
    _told: tuple[datetime, float] | None = field(default=None, init=False)

    def tell(self, moment: datetime) -> None:
        """An answer that came now carries this time."""
        self._told = (moment, self.steady_seconds())

    def now(self) -> datetime | None:
        """Return the time that the server's clock shows now; None before its first answer."""
        told = self._told
        if told is None:
            return None
        return told[0] + timedelta(seconds=self.steady_seconds() - told[1])
