"""Lists, their pages, and watch streams, as bytes on the wire."""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from reconciler.sandbox.cluster.objects.resources import Resource
from reconciler.sandbox.cluster.objects.selectors import Matches
from reconciler.sandbox.cluster.objects.status import ApiError, JsonObject, bad_request, expired
from reconciler.sandbox.cluster.objects.store import Change, Entry, Store

_IDLE_SECONDS = 2.0
"""A quiet stream yields this often, so that a disconnected client is noticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selects the objects of a list or a watch."""

    resource: Resource
    namespace: str = ""
    """Empty: all namespaces."""
    matches: Matches | None = None
    """None: all of them."""

    def admits(self, entry: Entry) -> bool:
        """Return whether an object belongs to the selection."""
        if self.namespace and entry.key[0] != self.namespace:
            return False
        return self.matches is None or self.matches(entry.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list."""

    entries: list[Entry]
    version: int
    token: str = ""
    """`continue` of the next page; empty on the last one."""
    remaining: int | None = None
    """Objects after this page; None where the API server does not count them."""

    def metadata(self) -> JsonObject:
        """Return its metav1.ListMeta."""
        body: JsonObject = {"resourceVersion": str(self.version)}
        if self.token:
            body["continue"] = self.token
            if self.remaining is not None:
                body["remainingItemCount"] = self.remaining
        return body


def list_page(
    store: Store, selection: Selection, *, limit: int = 0, token: str = "", exact: int = 0
) -> Page:
    """Return one page, from the start or a `continue` token; all pages show one moment.

    `exact` asks for one version; only the newest is kept, any other one is 410 Expired.

    Raises:
        ApiError: 410 for a token or a version that is not kept any more.
    """
    if token:
        version, entries = store.kept_page(token)
    else:
        found, version = store.objects(selection.resource, selection.namespace)
        entries = [entry for entry in found if selection.admits(entry)]
        if exact and exact != version:
            raise expired(f"The resourceVersion for the provided list is too old: {exact}")
    if not limit or len(entries) <= limit:
        return Page(entries=entries, version=version)
    rest = entries[limit:]
    identity = f"{id(selection)}/{version}/{rest[0].resource.qualified}/{rest[0].key}/{len(rest)}"
    following = hashlib.sha256(identity.encode()).hexdigest()
    store.keep_page(following, version, rest)
    counted = None if selection.matches else len(rest)
    return Page(entries=entries[:limit], version=version, token=following, remaining=counted)


def list_body(resource: Resource, page: Page) -> bytes:
    """Return the list object; its items have no kind and apiVersion, as in the API server."""
    head = {"kind": resource.list_kind, "apiVersion": resource.group_version}
    text = orjson.dumps({**head, "metadata": page.metadata()})
    return text[:-1] + b',"items":[' + b",".join(entry.raw for entry in page.entries) + b"]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """The query parameters of a watch."""

    version: int | None
    """Changes after this one; None or 0: what exists first, then changes."""
    timeout_seconds: float
    bookmarks: bool = False
    bookmark_seconds: float = 10.0
    initial_events: bool | None = None
    """sendInitialEvents: what exists, then a bookmark that says so, then changes."""


def _line(kind: str, payload: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + payload + b"}\n"


def _bookmark(resource: Resource, version: int, *, initial_end: bool = False) -> bytes:
    metadata: JsonObject = {"resourceVersion": str(version), "creationTimestamp": None}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    head = {"kind": resource.kind, "apiVersion": resource.group_version}
    return _line("BOOKMARK", orjson.dumps({**head, "metadata": metadata}))


def _change_line(selection: Selection, change: Change) -> bytes | None:
    """Return a change for the selection: an object may enter or leave it."""
    before = change.before is not None and selection.admits(change.before)
    after = change.type != "DELETED" and selection.admits(change.entry)
    if after:
        return _line("MODIFIED" if before else "ADDED", change.entry.typed())
    if not before or change.before is None:
        return None
    if change.type == "DELETED":
        return _line("DELETED", change.entry.typed())
    body = change.before.copy()
    body["metadata"]["resourceVersion"] = str(change.entry.version)
    gone = Entry(selection.resource, body, change.entry.version)
    return _line("DELETED", gone.typed())


def check_watch(options: WatchOptions, match: str) -> None:
    """Refuse combinations that the API server refuses.

    Raises:
        ApiError: 400.
    """
    if options.initial_events is not None and match != "NotOlderThan":
        raise bad_request("sendInitialEvents requires resourceVersionMatch=NotOlderThan")


def watch(store: Store, selection: Selection, options: WatchOptions) -> Iterator[bytes]:
    """Yield lines of a watch stream until its time is over or the store closes.

    An empty chunk means that nothing happened for a while. A version that the log no longer
    holds is an ERROR event with a 410 Status, after which the stream ends.
    """
    version = options.version or 0
    initial = options.initial_events
    if initial or (initial is None and not version):
        with store.transaction():
            entries, version = store.objects(selection.resource, selection.namespace)
        yield b"".join(_line("ADDED", e.typed()) for e in entries if selection.admits(e))
        if initial and options.bookmarks:
            yield _bookmark(selection.resource, version, initial_end=True)
    elif initial is False and not version:
        version = store.version
    try:
        yield from _follow(store, selection, options, version)
    except ApiError as error:
        yield _line("ERROR", orjson.dumps(error.status()))


def _follow(
    store: Store, selection: Selection, options: WatchOptions, version: int
) -> Iterator[bytes]:
    end = time.monotonic() + options.timeout_seconds
    marked = time.monotonic()
    while not store.closed:
        now = time.monotonic()
        if now >= end:
            break
        if options.bookmarks and now - marked >= options.bookmark_seconds:
            marked = now
            yield _bookmark(selection.resource, version)
        wait = min(end - now, _IDLE_SECONDS, options.bookmark_seconds)
        changes, version = store.changes_since(selection.resource, version, wait)
        lines = (_change_line(selection, change) for change in changes)
        yield b"".join(line for line in lines if line is not None)
    if options.bookmarks and not store.closed:
        yield _bookmark(selection.resource, version)
