"""The second full list, taken beside the watch: changes must not wait for it."""

import threading

from msgspec import Raw

from reconciler.adapters.kubernetes.cache import Cache
from reconciler.adapters.kubernetes.comparison import Comparison, Held
from reconciler.adapters.kubernetes.errors import busy_seconds
from reconciler.adapters.kubernetes.headers import header_of
from reconciler.adapters.kubernetes.kinds import Kind
from reconciler.adapters.kubernetes.listing import read_list
from reconciler.adapters.kubernetes.transport import Transport
from reconciler.records.garbage import garbage_collection_paused
from reconciler.records.kubernetes import ObjectDecoder

CONFIRM_SECONDS = 30.0
"""A second full list is taken so long after the first, and after one that shrank: the planner
ends many nodes at once only when two lists agree."""
PAGE_OBJECTS = 250
PAGE_PAUSE_SECONDS = 0.1
"""Reading a page takes some hundredths of a second of CPU, here and in the API server: a pod that
comes meanwhile would wait for all of them at once."""
LAG_SECONDS = 1.0
"""The list may be ahead of the watch: what the watch tells of within this time is no difference."""
BACKOFF_SECONDS = 0.5
BACKOFF_MAX_SECONDS = 15.0


class _Stopped(Exception):
    """End the wait: the list is not needed any more."""


class Confirmation(threading.Thread):
    """Takes full lists until one agrees that no more than usual is gone, and ends.

    Args:
        kind: What to list.
        transport: How to reach the server.
        cache: What to compare with, and to mend.
        decoder: Shared by all kinds, so that specs are.
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
        """List until one agrees; every failure is waited out, longer each time."""
        pause_seconds, backoff_seconds = self._confirm_seconds, BACKOFF_SECONDS
        while not self._stopping.wait(pause_seconds):
            try:
                if self._agreed():
                    return
            except _Stopped:
                return
            except Exception as error:  # noqa: BLE001 - a dead thread would never confirm anything
                # The watch is what tells whether the server is there; its failures are reported.
                pause_seconds = max(backoff_seconds, busy_seconds(error, BACKOFF_MAX_SECONDS))
                backoff_seconds = min(2 * backoff_seconds, BACKOFF_MAX_SECONDS)
            else:
                pause_seconds, backoff_seconds = self._confirm_seconds, BACKOFF_SECONDS

    def stop(self) -> None:
        """End the thread as soon as the request that is under way is over."""
        self._stopping.set()

    def _agreed(self) -> bool:
        """Take a list and settle it with the cache; whether nothing is left to confirm."""
        read_list(self._transport, self._kind, self._begin, self._take, PAGE_OBJECTS)
        if not self._comparison.agrees:
            self._pause(LAG_SECONDS)
        return self._cache.settle(self._comparison)

    def _begin(self) -> None:
        self._comparison = self._cache.compare()

    def _take(self, page: list[Raw]) -> None:
        """Note what differs; objects known in this very version are not even decoded."""
        with garbage_collection_paused():
            for raw in page:
                metadata = header_of(raw).metadata
                if not self._comparison.counts(metadata.key):
                    continue
                version = metadata.resource_version
                if self._cache.held_in(metadata.key, version) is None:
                    held = Held(version, self._decoder.decode(self._kind.name, raw))
                    self._comparison.differs(metadata.key, held)
        self._pause(PAGE_PAUSE_SECONDS)

    def _pause(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise _Stopped
