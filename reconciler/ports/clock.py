"""Time, so that no decision and no wait reads the machine's clock itself."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """A source of time."""

    def now(self) -> datetime:
        """Return the wall clock's time, aware UTC."""
        ...

    def monotonic_seconds(self) -> float:
        """Return the time of a clock that never jumps, for durations and deadlines."""
        ...

    def wait_seconds(self, seconds: float) -> None:
        """Wait; return early when the program is to stop."""
        ...


@dataclass(slots=True)
class RemoteClock:
    """A server's clock as its answers state it; thread-safe.

    Args:
        steady_seconds: A clock that never jumps, for the time since the last answer.
    """

    steady_seconds: Callable[[], float]
    _set: tuple[datetime, float] | None = field(default=None, init=False)

    def tell(self, moment: datetime) -> None:
        """Note that an answer that came now states this time."""
        self._set = (moment, self.steady_seconds())

    def now(self) -> datetime | None:
        """Return the time that the server's clock shows now; None before its first answer."""
        set_to = self._set
        if set_to is None:
            return None
        return set_to[0] + timedelta(seconds=self.steady_seconds() - set_to[1])
