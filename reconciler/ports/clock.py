"""Time, so that no decision and no wait reads the machine's clock on its own."""

from datetime import datetime
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
