"""The cluster's objects: one revision counter, optimistic locking, a bounded watch log.

What etcd and the API server's storage layer do, and nothing of what a resource type means:
defaults, validation and graceful deletion are the business of `api`.

Bodies are parsed JSON without `kind` and `apiVersion`; a stored body is never changed in place.
"""

import threading
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

import orjson

from reconciler.sandbox.cluster.objects.resources import PODS, Resource
from reconciler.sandbox.cluster.objects.status import (
    STALE,
    JsonObject,
    already_exists,
    conflict,
    expired,
    not_found,
)

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Key = tuple[str, str]
"""Namespace (empty for cluster-scoped types) and name."""


class Entry:
    """One version of one object, with its JSON text made at most once."""

    __slots__ = ("_raw", "body", "key", "resource", "version")

    def __init__(self, resource: Resource, body: JsonObject, version: int) -> None:
        metadata = body["metadata"]
        self.resource = resource
        self.body = body
        self.version = version
        self.key: Key = (metadata.get("namespace", ""), metadata["name"])
        self._raw: bytes | None = None

    @property
    def raw(self) -> bytes:
        """Return the body as JSON, without kind and apiVersion: an item of a list."""
        if self._raw is None:
            self._raw = orjson.dumps(self.body)
        return self._raw

    def typed(self) -> bytes:
        """Return the whole object as JSON, with kind and apiVersion."""
        head = f'{{"kind":"{self.resource.kind}","apiVersion":"{self.resource.group_version}",'
        return head.encode() + self.raw[1:]

    def copy(self) -> JsonObject:
        """Return a copy of the body, to change and to put back."""
        body: JsonObject = orjson.loads(self.raw)
        return body

    @property
    def uid(self) -> str:
        """Return metadata.uid."""
        return str(self.body["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the watch log."""

    type: EventType
    entry: Entry
    before: Entry | None
    """The version before; None when the object was created."""


class _Shelf:
    """All objects and the watch log of one resource type."""

    def __init__(self, lock: threading.RLock, log_length: int) -> None:
        self.objects: dict[str, dict[str, Entry]] = {}
        self.log: deque[Change] = deque(maxlen=log_length)
        self.changed = threading.Condition(lock)
        self.compacted = 0
        """Version of the newest change that the log has dropped."""

    def get(self, key: Key) -> Entry | None:
        return self.objects.get(key[0], {}).get(key[1])

    def put(self, entry: Entry) -> None:
        self.objects.setdefault(entry.key[0], {})[entry.key[1]] = entry

    def drop(self, key: Key) -> None:
        del self.objects[key[0]][key[1]]

    def append(self, change: Change) -> None:
        if len(self.log) == self.log.maxlen:
            self.compacted = self.log[0].entry.version
        self.log.append(change)


class Store:
    """All objects of the cluster; thread-safe.

    Args:
        seed: Uids are derived from it and a counter.
        log_length: Changes that a watch may lag behind, per resource type; older: 410 Expired.
        snapshots_max: Paged lists that may be under way at once; the oldest then expires.
    """

    def __init__(self, seed: str, *, log_length: int = 10_000, snapshots_max: int = 64) -> None:
        self.lock = threading.RLock()
        """Held by `api` over read-modify-write sequences; re-entrant."""
        self._namespace = uuid.uuid5(uuid.NAMESPACE_URL, seed)
        self._made = 0
        self._version = 1
        self._log_length = log_length
        self._shelves: dict[Resource, _Shelf] = {}
        self._listeners: list[Callable[[Change], None]] = []
        self._pages: OrderedDict[str, tuple[int, list[Entry]]] = OrderedDict()
        self._snapshots_max = snapshots_max
        self._owned: dict[str, dict[tuple[Resource, Key], None]] = {}
        self._pods_on: dict[str, dict[Key, None]] = {}
        self._closed = False

    @property
    def version(self) -> int:
        """Return the newest resourceVersion."""
        return self._version

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` with every change from now on; it must only hand it over."""
        self._listeners.append(listener)

    def close(self) -> None:
        """End all watches."""
        with self.lock:
            self._closed = True
            for shelf in self._shelves.values():
                shelf.changed.notify_all()

    @property
    def closed(self) -> bool:
        """Return whether watches are to end."""
        return self._closed

    def _shelf(self, resource: Resource) -> _Shelf:
        shelf = self._shelves.get(resource)
        if shelf is None:
            shelf = self._shelves[resource] = _Shelf(self.lock, self._log_length)
        return shelf

    # Reading

    def find(self, resource: Resource, key: Key) -> Entry | None:
        """Return the current version, or None."""
        with self.lock:
            return self._shelf(resource).get(key)

    def get(self, resource: Resource, key: Key) -> Entry:
        """Return the current version.

        Raises:
            ApiError: 404.
        """
        entry = self.find(resource, key)
        if entry is None:
            raise not_found(resource, key[1])
        return entry

    def objects(self, resource: Resource, namespace: str = "") -> tuple[list[Entry], int]:
        """Return all objects of a type, or of one namespace, in key order, and the version."""
        with self.lock:
            objects = self._shelf(resource).objects
            names = [namespace] if namespace else sorted(objects)
            entries = [
                space[name]
                for space in (objects.get(key, {}) for key in names)
                for name in sorted(space)
            ]
            return entries, self._version

    def owned_by(self, uid: str, resource: Resource) -> list[Entry]:
        """Return objects of a type whose ownerReferences name the uid, oldest first."""
        with self.lock:
            keys = [key for kind, key in self._owned.get(uid, ()) if kind is resource]
            return [self._shelves[resource].objects[key[0]][key[1]] for key in keys]

    def dependents(self, uid: str) -> list[Entry]:
        """Return objects of every type whose ownerReferences name the uid."""
        with self.lock:
            owned = list(self._owned.get(uid, ()))
            return [self._shelves[kind].objects[key[0]][key[1]] for kind, key in owned]

    def pods_on(self, node: str) -> list[Entry]:
        """Return pods bound to a node, oldest binding first."""
        with self.lock:
            pods = self._shelf(PODS).objects
            return [pods[key[0]][key[1]] for key in self._pods_on.get(node, ())]

    def namespaced(self, namespace: str) -> list[Entry]:
        """Return everything inside a namespace."""
        with self.lock:
            shelves = list(self._shelves.values())
            return [e for shelf in shelves for e in shelf.objects.get(namespace, {}).values()]

    # Writing

    def next_uid(self) -> str:
        """Return a new unique uid."""
        with self.lock:
            self._made += 1
            return str(uuid.uuid5(self._namespace, str(self._made)))

    def create(self, resource: Resource, body: JsonObject) -> Entry:
        """Add an object; `metadata.uid` is set already, resourceVersion is set here.

        Raises:
            ApiError: 409 AlreadyExists.
        """
        with self.lock:
            metadata = body["metadata"]
            key = (metadata.get("namespace", ""), metadata["name"])
            if self._shelf(resource).get(key) is not None:
                raise already_exists(resource, key[1])
            entry = self._stamp(resource, body)
            self._publish(Change("ADDED", entry, None))
            return entry

    def replace(self, old: Entry, body: JsonObject) -> Entry:
        """Replace the body of `old`; an equal body changes nothing.

        Raises:
            ApiError: 409 Conflict when `old` is no longer the present version.
        """
        with self.lock:
            current = self._shelf(old.resource).get(old.key)
            if current is not old:
                raise conflict(old.resource, old.key[1], STALE)
            body["metadata"]["resourceVersion"] = str(old.version)
            if body == old.body:
                return old
            entry = self._stamp(old.resource, body)
            self._publish(Change("MODIFIED", entry, old))
            return entry

    def remove(self, old: Entry) -> Entry:
        """Remove an object; return its last state, with the version of the removal.

        Raises:
            ApiError: 409 Conflict when `old` is no longer the present version.
        """
        with self.lock:
            if self._shelf(old.resource).get(old.key) is not old:
                raise conflict(old.resource, old.key[1], STALE)
            entry = self._stamp(old.resource, old.copy())
            self._publish(Change("DELETED", entry, old))
            return entry

    def _stamp(self, resource: Resource, body: JsonObject) -> Entry:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        return Entry(resource, body, self._version)

    def _publish(self, change: Change) -> None:
        entry = change.entry
        shelf = self._shelf(entry.resource)
        self._reindex(change)
        if change.type == "DELETED":
            shelf.drop(entry.key)
        else:
            shelf.put(entry)
        shelf.append(change)
        shelf.changed.notify_all()
        for listener in self._listeners:
            listener(change)

    def _reindex(self, change: Change) -> None:
        """Update the indexes of owners and bindings; unchanged entries keep their order, by age."""
        reference = (change.entry.resource, change.entry.key)
        old = _links(change.before)
        new = _links(change.entry) if change.type != "DELETED" else _NO_LINKS
        for uid in old.owners - new.owners:
            _note(self._owned, uid, reference, add=False)
        for uid in new.owners - old.owners:
            _note(self._owned, uid, reference, add=True)
        if old.node != new.node:
            _note(self._pods_on, old.node, reference[1], add=False)
            if new.node:
                _note(self._pods_on, new.node, reference[1], add=True)

    # Watching

    def changes_since(
        self, resource: Resource, version: int, timeout_seconds: float
    ) -> tuple[list[Change], int]:
        """Return the changes of one type after `version`; wait up to the timeout for the first.

        Returns:
            The changes, oldest first, and the version up to which nothing is missing.

        Raises:
            ApiError: 410 Expired, when changes after `version` are no longer in the log.
        """
        with self.lock:
            shelf = self._shelf(resource)
            if not self._closed and not _after(shelf.log, version):
                shelf.changed.wait(timeout_seconds)
            if version < shelf.compacted:
                raise expired(f"too old resource version: {version} ({shelf.compacted})")
            return _after(shelf.log, version), self._version

    # Paging

    def keep_page(self, token: str, version: int, rest: Iterable[Entry]) -> None:
        """Store what a paged list has not returned yet."""
        with self.lock:
            self._pages[token] = (version, list(rest))
            while len(self._pages) > self._snapshots_max:
                self._pages.popitem(last=False)

    def kept_page(self, token: str) -> tuple[int, list[Entry]]:
        """Return the version and the rest of a paged list; a token may be used more than once.

        Raises:
            ApiError: 410 Expired, when it is not remembered any more.
        """
        with self.lock:
            if token not in self._pages:
                raise expired(
                    "The provided continue parameter is too old to display a consistent list "
                    "result. You must start a new list without the continue parameter."
                )
            return self._pages[token]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Lock the store during a read-modify-write sequence."""
        with self.lock:
            yield


@dataclass(frozen=True, slots=True)
class _Links:
    owners: frozenset[str] = frozenset()
    node: str = ""


_NO_LINKS = _Links()


def _links(entry: Entry | None) -> _Links:
    """Return the index keys of an object."""
    if entry is None:
        return _NO_LINKS
    owners = entry.body["metadata"].get("ownerReferences") or ()
    node = entry.body["spec"].get("nodeName", "") if entry.resource is PODS else ""
    return _Links(frozenset(owner.get("uid", "") for owner in owners), node)


Reference = TypeVar("Reference")


def _note(
    index: dict[str, dict[Reference, None]], key: str, reference: Reference, *, add: bool
) -> None:
    if add:
        index.setdefault(key, {})[reference] = None
    else:
        held = index.get(key, {})
        held.pop(reference, None)
        if not held:
            index.pop(key, None)


def _after(log: deque[Change], version: int) -> list[Change]:
    """Return the tail of the log after a version: looked for from the end, where watches are."""
    tail: list[Change] = []
    for change in reversed(log):
        if change.entry.version <= version:
            break
        tail.append(change)
    tail.reverse()
    return tail
