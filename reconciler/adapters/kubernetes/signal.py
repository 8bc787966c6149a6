"""The signal that ends the wait of the loop, whichever source notifies it."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from reconciler.ports.changes import Handled

QUIET_SECONDS: Final = 0.2
"""A burst goes on while its changes come closer together than this: an API server that admits a
thousand pods pauses that long in between."""

BURST_SECONDS_MAX: Final = 10.0
"""The changes of one namespace are a burst for so long. After that they are a stream, and no window
waits for its end."""

PAUSE_SECONDS: Final = 1.0
"""Without a change of a namespace for so long, its next one begins another burst."""

BURSTS_MAX: Final = 1000
"""Namespaces whose bursts are followed; those that paused are forgotten beyond it."""

RESUMED_SECONDS: Final = 0.5
"""A watch that the server cut off tells of more within this time after it."""


@dataclass(slots=True)
class _Notified:
    """What one source notified and no cycle has dealt with."""

    first_at: float
    number: int
    """Of the last call."""


class ThreadedChangeSignal:
    """A ChangeSignal and the waits for it; changes between two waits are kept.

    Args:
        monotonic: A clock that never jumps.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._condition = threading.Condition()
        self._monotonic = monotonic
        self._number = 0
        self._pending: dict[str, _Notified] = {}
        """By source: what came since the last observation."""
        self._seen: dict[str, _Notified] = {}
        """By source: what the last observation saw, and no cycle has ended since."""
        self._unconfirmed: dict[str, int] = {}
        """By source: the last number that a cycle has dealt with and that its hook has not got."""
        self._hooks: dict[str, Callable[[int], None]] = {}
        self._demand = False
        self._first_at = 0.0
        self._asked_at: float | None = None
        """When the first change came that asks for something."""
        self._last_at = 0.0
        """When the last change came for whose followers a window waits."""
        self._bursts: dict[str, tuple[float, float]] = {}
        """By namespace: when its burst began, and its last change."""
        self._more_until = 0.0
        self._closed = False

    def notify(
        self, source: str, *, demand: bool = False, calm: bool = False, namespace: str = ""
    ) -> int:
        """See ports.changes."""
        with self._condition:
            self._demand = self._demand or demand
            now = self._monotonic()
            if not self._pending:
                self._first_at = now
            if not calm:
                self._asked_at = now if self._asked_at is None else self._asked_at
                self._last_at = now if self._is_burst(namespace, now) else self._last_at
            self._number += 1
            notified = self._pending.setdefault(source, _Notified(now, self._number))
            notified.number = self._number
            self._condition.notify_all()
            return self._number

    def _is_burst(self, namespace: str, now: float) -> bool:
        """Whether the namespace's changes have not gone on for too long."""
        began, last = self._bursts.get(namespace, (now, now))
        began = now if now - last > PAUSE_SECONDS else began
        if len(self._bursts) >= BURSTS_MAX:
            bursts = self._bursts.items()
            self._bursts = {name: b for name, b in bursts if now - b[1] <= PAUSE_SECONDS}
        self._bursts[namespace] = (began, now)
        return now - began <= BURST_SECONDS_MAX

    def on_handled(self, source: str, hook: Callable[[int], None]) -> None:
        """See ports.changes."""
        with self._condition:
            self._hooks[source] = hook

    def expect_more(self, seconds: float = RESUMED_SECONDS) -> None:
        """A burst that is under way was cut off: what is left of it comes within this time."""
        with self._condition:
            self._more_until = self._monotonic() + seconds

    def close(self) -> None:
        """End all waits, now and later."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def clear(self) -> None:
        """Take the changes up to now as seen: an observation begins."""
        with self._condition:
            for source, notified in self._pending.items():
                earlier = self._seen.setdefault(source, notified)
                earlier.number = notified.number
            self._pending = {}
            self._demand = False
            self._asked_at = None

    def acknowledge(self, *, complete: bool) -> tuple[Handled, ...]:
        """See ports.changes.Changes."""
        with self._condition:
            seen, self._seen = self._seen, {}
            now = self._monotonic()
            for source, notified in seen.items():
                if source in self._hooks:
                    self._unconfirmed[source] = notified.number
            due: dict[str, int] = {}
            if complete:
                due, self._unconfirmed = self._unconfirmed, due
        for source in sorted(due):
            self._hooks[source](due[source])
        return tuple(
            Handled(source=source, seconds=now - seen[source].first_at) for source in sorted(seen)
        )

    @property
    def demand(self) -> bool:
        """Whether a pod began to wait for a node since the last `clear`."""
        return self._demand

    def wait(self, timeout_seconds: float) -> bool:
        """Whether a change came within the time; False also when it was closed."""
        with self._condition:
            longest = max(0.0, timeout_seconds)
            self._condition.wait_for(lambda: bool(self._pending) or self._closed, longest)
            return bool(self._pending) and not self._closed

    def gather(self, window_seconds: float, longest_seconds: float, calm_seconds: float) -> float:
        """Let a burst come in; see ports.cluster."""
        began: float | None = None
        with self._condition:
            while self._pending and not self._closed:
                now = self._monotonic()
                began = now if began is None else began
                asked_at = self._asked_at
                if asked_at is None:
                    window = max(window_seconds, calm_seconds)
                    end = self._first_at + window
                else:
                    window = window_seconds
                    quiet_at = max(self._last_at + QUIET_SECONDS, self._more_until)
                    end = min(max(asked_at + window, quiet_at), asked_at + longest_seconds)
                left = end - now
                if left <= 0:
                    return min(began - self._first_at, window) + now - began
                self._condition.wait_for(partial(self._is_asked_since, asked_at), left)
        return 0.0

    def _is_asked_since(self, asked_at: float | None) -> bool:
        """Whether something is asked for that was not before; also when it was closed."""
        return self._closed or self._asked_at != asked_at
