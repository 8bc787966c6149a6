"""Keeps one cache equal to what the API server has: list, watch, list again when too old."""

import threading
import time
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Raw, Struct, field

from reconciler.adapters.kubernetes.cache import Cache, Held, Key
from reconciler.adapters.kubernetes.errors import Gone
from reconciler.adapters.kubernetes.kinds import Kind
from reconciler.adapters.kubernetes.transport import Stream, Transport
from reconciler.model.errors import Throttled, Unavailable
from reconciler.records.interning import garbage_collection_paused
from reconciler.records.kubernetes import ObjectDecoder, decode_page

PAGE_OBJECTS = 1000
EXPIRED_MAX = 3
"""How often a list may outlive what the server keeps of it."""
WATCH_SECONDS = 40
"""A watch ends by itself that often: the server's bookmarks come once a minute, too rarely to
tell a quiet cluster from a dead connection within the 60 s that an observation may be old."""
WATCH_SECONDS_MIN = 1.0
"""A server or proxy that ends watches sooner than that is not asked again at once, unless the
watch brought something: API servers end those that a thousand events at once run over."""
SILENCE_SECONDS = WATCH_SECONDS + 10.0
BACKOFF_SECONDS = 0.5
BACKOFF_MAX_SECONDS = 15.0
CONFIRM_SECONDS = 30.0
"""A second full list is taken so long after the first, and after one that shrank: the planner
ends many nodes at once only when two lists agree."""


class _MetadataWire(Struct, rename="camel"):
    name: str = ""
    namespace: str | None = None
    resource_version: str = ""


class _HeaderWire(Struct, rename="camel"):
    metadata: _MetadataWire = field(default_factory=_MetadataWire)
    code: int | None = None
    message: str | None = None


class _EventWire(Struct):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: Raw


_HEADER = msgspec.json.Decoder(_HeaderWire)
_EVENT = msgspec.json.Decoder(_EventWire)


class _Broken(Unavailable):
    """The watch cannot get past a version; as in client-go, the kind is listed anew.

    Asked for from there again, it would end so for good, and look fresh all the same.
    """


class Reflector(threading.Thread):
    """The thread that feeds one cache.

    Args:
        kind: What to list and watch.
        transport: How to reach the server.
        cache: What to feed.
        decoder: Shared by all kinds, so that specs are.
    """

    def __init__(
        self,
        kind: Kind,
        transport: Transport,
        cache: Cache,
        decoder: ObjectDecoder,
        monotonic: Callable[[], float] = time.monotonic,
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
        self._listed_at = 0.0
        self._version = ""
        """From where to watch on; empty: a list is needed."""

    def run(self) -> None:
        """List and watch until stopped; every failure is waited out, longer each time."""
        pause_seconds = BACKOFF_SECONDS
        while not self._stopping.is_set():
            watched_from = float("inf")
            version = ""
            try:
                if not self._version or self._confirmation_due():
                    self._list()
                watched_from, version = self._monotonic(), self._version
                self._watch()
            except Exception as error:  # noqa: BLE001 - a dead thread would be a cluster gone blind
                self._give_way(error)
                if self._monotonic() - watched_from >= WATCH_SECONDS_MIN:
                    pause_seconds = BACKOFF_SECONDS  # it broke, but it had worked
                self._stopping.wait(max(pause_seconds, _asked_seconds(error)))
                pause_seconds = min(2 * pause_seconds, BACKOFF_MAX_SECONDS)
                continue
            pause_seconds = BACKOFF_SECONDS
            if self._version != version:
                self.cache.cut_off()
            elif self._monotonic() - watched_from < WATCH_SECONDS_MIN:
                self._stopping.wait(pause_seconds)

    def _give_way(self, error: Exception) -> None:
        """Note a failure; unless the server is only out of reach or busy, it is listed anew.

        So it is after a long silence, too: a server that was restored from a backup refuses to
        watch from a version that it never had, for good.
        """
        self.cache.failed(str(error) or type(error).__name__)
        out_of_reach = isinstance(error, Unavailable) and not isinstance(error, Gone | _Broken)
        silent = self.cache.silent_seconds() > SILENCE_SECONDS
        if isinstance(error, Throttled) or (out_of_reach and not silent):
            return
        self._version = ""

    def stop(self) -> None:
        """End the thread; `join` afterwards."""
        self._stopping.set()
        with self._stream_lock:
            if self._stream is not None:
                self._stream.interrupt()

    def _confirmation_due(self) -> bool:
        waited = self._monotonic() - self._listed_at
        return self.cache.lists_agreeing == 1 and waited >= CONFIRM_SECONDS

    def _watch_seconds(self) -> int:
        """Until the watch must end: sooner when a list is to be confirmed."""
        if self.cache.lists_agreeing != 1:
            return WATCH_SECONDS
        left = CONFIRM_SECONDS - (self._monotonic() - self._listed_at)
        return max(1, min(WATCH_SECONDS, round(left)))

    def _list(self) -> None:
        """Take a full list, page by page; in one piece when pages come too late again and again.

        One piece of 30,000 pods is 250 MB to hold.
        """
        found: dict[Key, Held] = {}
        first = {"limit": str(PAGE_OBJECTS), **self._selection()}
        query, expired = dict(first), 0
        while True:
            try:
                reply = self._transport.expect("GET", self.kind.path, query=query)
            except Gone:
                if "continue" not in query:
                    raise
                expired += 1
                found = {}
                query = dict(first) if expired < EXPIRED_MAX else self._selection()
                continue
            self.cache.heard()
            try:
                page = decode_page(reply.body)
            except (ValueError, RecursionError) as error:
                raise Unavailable(self.kind.path, f"the list cannot be read: {error}") from error
            with garbage_collection_paused():
                for item in page.items:
                    self._take(item, found)
            if not page.continue_token:
                self.cache.replace(found)
                self._listed_at = self._monotonic()
                self._version = page.resource_version
                return
            query["continue"] = page.continue_token

    def _take(self, raw: Raw, found: dict[Key, Held]) -> None:
        """Decode a listed object, unless it is known in this very version."""
        header = _header(raw)
        key = header.metadata.namespace or "", header.metadata.name
        known = self.cache.get(key)
        version = header.metadata.resource_version
        if known is not None and version and known.version == version:
            found[key] = known
        else:
            found[key] = Held(version, self._decoder.decode(self.kind.name, raw))

    def _watch(self) -> None:
        """Follow changes until the watch ends."""
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(self._watch_seconds()),
            **self._selection(),
        }
        stream = self._transport.stream(self.kind.path, query, SILENCE_SECONDS)
        with self._stream_lock:
            self._stream = stream
            if self._stopping.is_set():
                stream.interrupt()
        try:
            self.cache.heard()
            for line in stream.lines():
                self.cache.heard()
                self._version = self._apply(line) or self._version
        except Unavailable:
            if not self._stopping.is_set():
                raise
        finally:
            with self._stream_lock:
                self._stream = None
            stream.close()

    def _apply(self, line: bytes) -> str:
        """Carry one event into the cache; returns the version that it brings."""
        try:
            event = _EVENT.decode(line)
        except (ValueError, RecursionError) as error:
            raise _Broken(self.kind.path, f"unreadable event: {error}"[:300]) from error
        header = _header(event.object)
        metadata = header.metadata
        if event.type == "ERROR":
            if header.code == 410:
                raise Gone(self.kind.path, header.message or "too old")
            raise _Broken(self.kind.path, f"{header.code} {header.message}"[:300])
        key = metadata.namespace or "", metadata.name
        match event.type:
            case "ADDED" | "MODIFIED":
                decoded = self._decoder.decode(self.kind.name, event.object)
                self.cache.put(key, Held(metadata.resource_version, decoded))
            case "DELETED":
                self.cache.drop(key)
            case _:
                pass
        return metadata.resource_version

    def _selection(self) -> dict[str, str]:
        selector = self.kind.field_selector
        return {"fieldSelector": selector} if selector else {}


def _asked_seconds(error: Exception) -> float:
    """The pause that a busy server asks for, within reason."""
    asked = error.retry_after_seconds if isinstance(error, Throttled) else None
    return min(asked or 0.0, BACKOFF_MAX_SECONDS)


def _header(raw: Raw) -> _HeaderWire:
    """An object's metadata; an object without any has none that is of use."""
    try:
        return _HEADER.decode(raw)
    except (ValueError, RecursionError):
        return _HeaderWire()
