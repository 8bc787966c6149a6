"""Keeps one cache equal to the API server: list, watch, list again when too old."""

import threading
import time
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from reconciler.adapters.kubernetes.cache import Cache
from reconciler.adapters.kubernetes.comparison import CachedObject, Key
from reconciler.adapters.kubernetes.confirmation import CONFIRM_SECONDS, Confirmation
from reconciler.adapters.kubernetes.errors import Gone, NotAccepted, Unreachable, busy_seconds
from reconciler.adapters.kubernetes.headers import header_of
from reconciler.adapters.kubernetes.kinds import Kind
from reconciler.adapters.kubernetes.listing import read_list, selection
from reconciler.adapters.kubernetes.transport import Stream, Transport
from reconciler.machine.garbage import garbage_collection_paused
from reconciler.model.errors import Forbidden, Throttled, Unavailable
from reconciler.records.kubernetes import ObjectDecoder

WATCH_SECONDS = 40
"""How often a watch ends by itself: the server's bookmarks come once a minute, too rarely to
distinguish a quiet cluster from a dead connection within the 60 s limit of an observation's age."""
WATCH_SECONDS_MIN = 1.0
"""A watch that lasted this long before it broke had worked: the next one starts soon."""
QUIET_WATCH_SECONDS = 10
"""A watch without events proves that nothing changed only when it lasted at least this long:
otherwise a proxy that answers `200 {}` and ends would look like a quiet cluster."""
SILENCE_SECONDS = WATCH_SECONDS + 10.0
BACKOFF_SECONDS = 0.5
BACKOFF_MAX_SECONDS = 15.0


class _EventWire(Struct):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: Raw


_EVENT = msgspec.json.Decoder(_EventWire)


class _Broken(Unavailable):
    """The watch cannot get past a version; as in client-go, the kind is listed again.

    A new watch from that version would always end like this, and still look up to date.
    """


class _Silent(Unavailable):
    """The watch ended early without events, so what is known gets older."""


class Reflector(threading.Thread):
    """The thread that feeds one cache.

    Args:
        kind: What to list and watch.
        transport: How to reach the server.
        cache: What to feed.
        decoder: Shared by all kinds, so that specs are shared too.
        monotonic: A clock that never jumps.
        confirm_seconds: From the first full list to the second one.
    """

    def __init__(
        self,
        kind: Kind,
        transport: Transport,
        cache: Cache,
        decoder: ObjectDecoder,
        monotonic: Callable[[], float] = time.monotonic,
        confirm_seconds: float = CONFIRM_SECONDS,
    ) -> None:
        super().__init__(name=f"watch-{kind.name}", daemon=True)
        self.kind = kind
        self.cache = cache
        self._transport = transport
        self._decoder = decoder
        self._monotonic = monotonic
        self._stopping = threading.Event()
        self._stream: Stream | None = None
        self._stream_lock = threading.Lock()
        self._confirm_seconds = confirm_seconds
        self._confirmation: Confirmation | None = None
        self._version = ""
        """The version to watch from; empty: a list is needed."""
        self._was_silent = True
        """Whether nothing was received for long before the list that is needed."""

    def run(self) -> None:
        """List and watch until stopped; the pause after a failure grows."""
        pause_seconds = BACKOFF_SECONDS
        while not self._stopping.is_set():
            watched_from = float("inf")
            version = ""
            try:
                if not self._version:
                    self._list()
                watched_from, version = self._monotonic(), self._version
                self._watch()
            except Exception as error:  # noqa: BLE001 - a dead thread would be a cluster gone blind
                self._give_way(error)
                if self._monotonic() - watched_from >= WATCH_SECONDS_MIN:
                    pause_seconds = BACKOFF_SECONDS  # it broke, but it had worked
                self._stopping.wait(max(pause_seconds, busy_seconds(error, BACKOFF_MAX_SECONDS)))
                pause_seconds = min(2 * pause_seconds, BACKOFF_MAX_SECONDS)
                continue
            pause_seconds = BACKOFF_SECONDS
            if self._version != version:
                self.cache.cut_off()
        if self._confirmation is not None:
            self._confirmation.stop()
            self._confirmation.join()

    def _give_way(self, error: Exception) -> None:
        """Note a failure; the kind is listed again, unless the server is only unreachable or busy.

        It is also listed again after a long silence: a server that was restored from a backup
        always refuses to watch from a version that it never had.
        """
        # These two are the same for all kinds, and reported once.
        why = error.what if isinstance(error, Unreachable | NotAccepted) else str(error)
        lasting = isinstance(error, Unreachable | Forbidden)
        self.cache.failed(why or type(error).__name__, lasting=lasting)
        if isinstance(error, _Silent):  # lists would hide that no changes are received
            return
        out_of_reach = isinstance(error, Unavailable) and not isinstance(error, Gone | _Broken)
        silent = self.cache.silent_seconds() > SILENCE_SECONDS
        if isinstance(error, Throttled) or (out_of_reach and not silent):
            return
        self._version = ""

    def stop(self) -> None:
        """Make the thread end; call `join` afterwards."""
        self._stopping.set()
        with self._stream_lock:
            if self._stream is not None:
                self._stream.interrupt()

    def _list(self) -> None:
        """Read a full list; one that shrank, or is the first or after a silence, is confirmed."""
        self._was_silent |= self.cache.silent_seconds() > SILENCE_SECONDS
        cached_objects: dict[Key, CachedObject] = {}

        def take(page: list[Raw]) -> None:
            with garbage_collection_paused():
                for raw in page:
                    self._take(raw, cached_objects)

        version = read_list(self._transport, self.kind, cached_objects.clear, take)
        self.cache.replace(cached_objects, after_silence=self._was_silent)
        self.cache.note_answer()  # not for each page: of a list that does not end nothing is stored
        self._was_silent = False
        self._version = version
        self._confirm()

    def _confirm(self) -> None:
        """Start reading a confirming list during the watch, where needed; an older one is void."""
        if self._confirmation is not None:
            self._confirmation.stop()
        if self.cache.lists_agreeing == 1:
            self._confirmation = Confirmation(
                self.kind, self._transport, self.cache, self._decoder, self._confirm_seconds
            )
            self._confirmation.start()

    def _take(self, raw: Raw, found: dict[Key, CachedObject]) -> None:
        """Decode a listed object, unless it is known in exactly this version."""
        metadata = header_of(raw).metadata
        version = metadata.resource_version
        found[metadata.key] = self.cache.held_in(metadata.key, version) or CachedObject(
            version, self._decoder.decode(self.kind.name, raw)
        )

    def _watch(self) -> None:
        """Follow changes until the watch ends."""
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(self._watch_seconds()),
            **selection(self.kind),
        }
        began, seen = self._monotonic(), False
        stream = self._transport.stream(self.kind.path, query, SILENCE_SECONDS)
        with self._stream_lock:
            self._stream = stream
            if self._stopping.is_set():
                stream.interrupt()
        try:
            for line in stream.lines():
                self._version = self._apply(line) or self._version
                self.cache.note_answer()
                seen = True
        except Unavailable:
            if not self._stopping.is_set():
                raise
        finally:
            with self._stream_lock:
                self._stream = None
            stream.close()
        self._ended(seen=seen, seconds=self._monotonic() - began)

    def _watch_seconds(self) -> int:
        """Return how long to watch: less after a failure, so that quiet kinds stay up to date."""
        left = WATCH_SECONDS - min(self.cache.silent_seconds(), WATCH_SECONDS)
        return max(QUIET_WATCH_SECONDS, round(left))

    def _ended(self, *, seen: bool, seconds: float) -> None:
        """Handle a regular end of a watch; an early end without events proves nothing."""
        if seen or self._stopping.is_set():
            return
        if seconds < QUIET_WATCH_SECONDS:
            what = f"the watch ended after {seconds:.1f} s without an event"
            raise _Silent(self.kind.path, what)
        self.cache.note_answer()

    def _apply(self, line: bytes) -> str:
        """Apply one event to the cache; return its version."""
        try:
            event = _EVENT.decode(line)
        except (ValueError, RecursionError) as error:
            raise _Broken(self.kind.path, f"unreadable event: {error}"[:300]) from error
        header = header_of(event.object)
        metadata = header.metadata
        if event.type == "ERROR":
            if header.code == 410:
                raise Gone(self.kind.path, header.message or "too old")
            raise _Broken(self.kind.path, f"{header.code} {header.message}"[:300])
        key = metadata.key
        match event.type:
            case "ADDED" | "MODIFIED":
                decoded = self._decoder.decode(self.kind.name, event.object)
                self.cache.put(key, CachedObject(metadata.resource_version, decoded))
            case "DELETED":
                self.cache.drop(key)
            case _:
                pass
        return metadata.resource_version
