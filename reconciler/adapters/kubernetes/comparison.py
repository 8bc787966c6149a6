"""Compares a full list with the cache while a watch updates the cache."""

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.records.kubernetes import Decoded

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class CachedObject:
    """One object as it was decoded last."""

    version: str
    decoded: Decoded | None
    """None: an object that planning does not use, such as a foreign Lease."""


class Comparison:
    """The differences between a full list and the cache; nothing else is kept.

    It begins before the list is requested, so the list is newer than everything received before.
    For objects that the watch reports meanwhile the watch counts, as it will also report what the
    list had earlier. So versions, which are opaque, need not be compared.

    Args:
        keys: Keys of the objects that are cached now.
    """

    def __init__(self, keys: Iterable[Key]) -> None:
        self._received: set[Key] = set()
        self._missing = set(keys)
        self._other: dict[Key, CachedObject] = {}

    def note_received(self, key: Key) -> None:
        """Note that the watch reported an object: the list's entry does not count."""
        self._received.add(key)

    def counts(self, key: Key) -> bool:
        """Return whether the list's entry of an object counts, and note that it is in the list."""
        self._missing.discard(key)
        return key not in self._received

    def differs(self, key: Key, held: CachedObject) -> None:
        """Note another version of an object in the list, or one that is not cached."""
        self._other[key] = held

    @property
    def agrees(self) -> bool:
        """Return whether the list equals the cache."""
        return not self.other() and not self.missing()

    def other(self) -> dict[Key, CachedObject]:
        """Return the objects to store instead."""
        return {key: held for key, held in self._other.items() if key not in self._received}

    def missing(self) -> set[Key]:
        """Return the keys of cached objects that no longer exist."""
        return self._missing - self._received
