"""Reads the second full list during the watch, so that changes need not wait for it."""

import threading

from msgspec import Raw

from reconciler.adapters.kubernetes.cache import Cache
from reconciler.adapters.kubernetes.comparison import CachedObject, Comparison
from reconciler.adapters.kubernetes.errors import busy_seconds
from reconciler.adapters.kubernetes.headers import header_of
from reconciler.adapters.kubernetes.kinds import Kind
from reconciler.adapters.kubernetes.listing import read_list
from reconciler.adapters.kubernetes.transport import Transport
from reconciler.machine.garbage import garbage_collection_paused
from reconciler.records.kubernetes import ObjectDecoder

CONFIRM_SECONDS = 30.0
"""A second full list is read this long after the first, and after one that shrank: the planner ends
many nodes at once only when two lists agree."""
PAGE_OBJECTS = 250
PAGE_PAUSE_SECONDS = 0.1
"""Reading a page takes some hundredths of a second of CPU, here and in the API server: without
pauses a new pod would wait for all pages."""
LAG_SECONDS = 1.0
"""The list may be ahead of the watch: what the watch reports within this time is not a
difference."""
BACKOFF_SECONDS = 0.5
BACKOFF_MAX_SECONDS = 15.0


class _Stopped(Exception):
    """Ends the wait: the list is not needed any more."""


class Confirmation(threading.Thread):
    """Reads full lists until one confirms that no more than usual is gone, and ends.

    Args:
        kind: What to list.
        transport: How to reach the server.
        cache: What to compare with, and to correct.
        decoder: Shared by all kinds, so that specs are shared too.
        confirm_seconds: From the last list to the next one.
    """

    def __init__(
        self,
        kind: Kind,
        transport: Transport,
        cache: Cache,
        decoder: ObjectDecoder,
        confirm_seconds: float,
    ) -> None:
        super().__init__(name=f"confirm-{kind.name}", daemon=True)
        self._kind = kind
        self._transport = transport
        self._cache = cache
        self._decoder = decoder
        self._confirm_seconds = confirm_seconds
        self._stopping = threading.Event()
        self._comparison = Comparison(())

    def run(self) -> None:
        """List until one agrees; the pause after a failure grows."""
        pause_seconds, backoff_seconds = self._confirm_seconds, BACKOFF_SECONDS
        while not self._stopping.wait(pause_seconds):
            try:
                if self._agreed():
                    return
            except _Stopped:
                return
            except Exception as error:  # noqa: BLE001 - a dead thread would never confirm anything
                # Failures of the watch show whether the server can be reached; those are reported.
                pause_seconds = max(backoff_seconds, busy_seconds(error, BACKOFF_MAX_SECONDS))
                backoff_seconds = min(2 * backoff_seconds, BACKOFF_MAX_SECONDS)
            else:
                pause_seconds, backoff_seconds = self._confirm_seconds, BACKOFF_SECONDS

    def stop(self) -> None:
        """End the thread as soon as the current request is over."""
        self._stopping.set()

    def _agreed(self) -> bool:
        """Read a list and settle it with the cache; return whether nothing is left to confirm."""
        read_list(self._transport, self._kind, self._begin, self._take, PAGE_OBJECTS)
        if not self._comparison.agrees:
            self._pause(LAG_SECONDS)
        return self._cache.settle(self._comparison)

    def _begin(self) -> None:
        self._comparison = self._cache.compare()

    def _take(self, page: list[Raw]) -> None:
        """Note differences; objects known in exactly this version are not even decoded."""
        with garbage_collection_paused():
            for raw in page:
                metadata = header_of(raw).metadata
                if not self._comparison.counts(metadata.key):
                    continue
                version = metadata.resource_version
                if self._cache.held_in(metadata.key, version) is None:
                    held = CachedObject(version, self._decoder.decode(self._kind.name, raw))
                    self._comparison.differs(metadata.key, held)
        self._pause(PAGE_PAUSE_SECONDS)

    def _pause(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise _Stopped
