"""The signal that ends the loop's wait, whichever source notifies it."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from reconciler.ports.changes import HandledChanges, Window

QUIET_SECONDS: Final = 0.2
"""A burst lasts while its changes are closer together than this: an API server that creates a
thousand pods pauses this long in between."""

BURSTS_MAX: Final = 1000
"""Namespaces whose bursts are tracked separately; all others share one."""

RESUMED_SECONDS: Final = 0.5
"""A watch that the server cut off delivers the rest within this time."""


@dataclass(slots=True)
class _Burst:
    """Changes of one namespace that need a plan and that no observation has seen."""

    first_at: float
    last_at: float

    def ends_at(self, window_seconds: float, longest_seconds: float, more_until: float) -> float:
        """Return when it is over, if no other change of it comes."""
        quiet_at = max(self.last_at + QUIET_SECONDS, more_until)
        end = max(self.first_at + window_seconds, quiet_at)
        return min(end, self.first_at + longest_seconds)


class ThreadedChangeSignal:
    """A ChangeSignal and the waits for it; changes between two waits are kept.

    Args:
        monotonic: A clock that never jumps.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._condition = threading.Condition()
        self._monotonic = monotonic
        self._pending: dict[str, float] = {}
        """By source: when the first change since the last observation came."""
        self._seen: dict[str, float] = {}
        """By source: when the first change came that observations have seen and no cycle has
        handled."""
        self._demand = False
        self._first_at = 0.0
        self._bursts: dict[str, _Burst] = {}
        """By namespace."""
        self._more_until = 0.0
        self._closed = False

    def notify(
        self, source: str, *, demand: bool = False, calm: bool = False, namespace: str = ""
    ) -> None:
        """See ports.changes."""
        with self._condition:
            self._demand = self._demand or demand
            now = self._monotonic()
            if not self._pending:
                self._first_at = now
            if not calm:
                known = namespace in self._bursts or len(self._bursts) < BURSTS_MAX
                burst = self._bursts.setdefault(namespace if known else "", _Burst(now, now))
                burst.last_at = now
            self._pending.setdefault(source, now)
            self._condition.notify_all()

    def expect_more(self, seconds: float = RESUMED_SECONDS) -> None:
        """Extend a burst that was cut off, because its rest is expected within this time."""
        with self._condition:
            self._more_until = self._monotonic() + seconds

    def close(self) -> None:
        """End all waits, now and later."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def clear(self) -> None:
        """Mark the changes up to now as seen: an observation begins."""
        with self._condition:
            self._seen = self._pending | self._seen
            self._pending = {}
            self._demand = False
            self._bursts = {}

    def acknowledge(self) -> tuple[HandledChanges, ...]:
        """See ports.changes.Changes."""
        with self._condition:
            seen, self._seen = self._seen, {}
            now = self._monotonic()
        return tuple(
            HandledChanges(source=source, seconds=now - seen[source]) for source in sorted(seen)
        )

    @property
    def demand(self) -> bool:
        """Return whether a pod began to wait for a node since the last `clear`."""
        return self._demand

    def wait(self, timeout_seconds: float) -> bool:
        """Return whether a change came within the time; False also after `close`."""
        with self._condition:
            longest = max(0.0, timeout_seconds)
            self._condition.wait_for(lambda: bool(self._pending) or self._closed, longest)
            return bool(self._pending) and not self._closed

    def gather(self, window: Window) -> float:
        """Collect a burst; see ports.cluster."""
        began: float | None = None
        with self._condition:
            while self._pending and not self._closed:
                now = self._monotonic()
                began = now if began is None else began
                bursts = len(self._bursts)
                if bursts:
                    length = window.window_seconds
                    end = min(
                        burst.ends_at(
                            window.longest_seconds if namespace in window.unhurried else length,
                            window.longest_seconds,
                            self._more_until,
                        )
                        for namespace, burst in self._bursts.items()
                    )
                else:
                    length = max(window.window_seconds, window.calm_seconds)
                    end = self._first_at + length
                left = end - now
                if left <= 0:
                    return min(began - self._first_at, length) + now - began
                self._condition.wait_for(partial(self._has_begun_since, bursts), left)
        return 0.0

    def _has_begun_since(self, bursts: int) -> bool:
        """Return whether another burst has begun since; also after `close`."""
        return self._closed or len(self._bursts) != bursts
