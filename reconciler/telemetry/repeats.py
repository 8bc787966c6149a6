"""Suppresses repeats of an event for one object, so that they are logged only at intervals."""

from collections.abc import Callable, Hashable

WINDOW_SECONDS = 120.0
OBJECTS_MAX = 10_000
"""How many objects are kept at most."""


class Repeats:
    """Keeps which event was logged about which object, and when.

    Args:
        monotonic_seconds: A clock that never jumps.
        window_seconds: How long a repeat is suppressed.
    """

    def __init__(
        self, monotonic_seconds: Callable[[], float], window_seconds: float = WINDOW_SECONDS
    ) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._window_seconds = window_seconds
        self._said_at: dict[Hashable, float] = {}

    def is_news(self, *key: Hashable) -> bool:
        """Return whether this (event, object, …) is new within the window, and record it."""
        now = self._monotonic_seconds()
        said_at = self._said_at.get(key)
        if said_at is not None and now - said_at < self._window_seconds:
            return False
        self._said_at.pop(key, None)
        self._said_at[key] = now
        self._forget(now)
        return True

    def _forget(self, now: float) -> None:
        """Drop what is older than the window, and the oldest entries beyond the limit."""
        while self._said_at:
            oldest = next(iter(self._said_at))
            expired = now - self._said_at[oldest] >= self._window_seconds
            if not expired and len(self._said_at) <= OBJECTS_MAX:
                return
            del self._said_at[oldest]
