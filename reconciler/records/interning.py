"""One object for equal values, so that comparing and grouping them is a look at identity."""

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class InternTable(Generic[K, V]):
    """A bounded table from keys to the one value that stands for them.

    Two generations: what is used moves to the young one; when that is full, the old one is
    dropped. So a value in use survives, what nobody asks for goes, and at most twice
    `entries_max` are held. A value that was dropped and built again is a new object: callers may
    rely on identity for speed, never for correctness.
    """

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value of the key, or None when it is not known."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: K, value: V) -> V:
        """Keep a value; returns the one to use, which is the older one when there is one."""
        if len(self._young) >= self._entries_max:
            self._old, self._young = self._young, {}
        return self._young.setdefault(key, value)

    def get_or_build(self, key: K, build: Callable[[], V]) -> V:
        """The value of the key, built on the first call; a `build` that raises leaves nothing."""
        found = self.get(key)
        return found if found is not None else self.put(key, build())

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


class _Pauses:
    """How many of those who want the collector off are at work, over all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._was_enabled = False

    def begin(self) -> None:
        """The first one turns it off."""
        with self._lock:
            if not self._running:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._running += 1

    def end(self) -> None:
        """The last one turns it on, if it was."""
        with self._lock:
            self._running -= 1
            if not self._running and self._was_enabled:
                gc.enable()


_PAUSES = _Pauses()


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Decode in bulk without the cyclic collector; several threads may do so at once.

    Decoded values have no cycles, but each of the many new objects makes the collector walk all
    of them again: off, a list of 30,000 pods decodes several times faster.
    """
    _PAUSES.begin()
    try:
        yield
    finally:
        _PAUSES.end()
