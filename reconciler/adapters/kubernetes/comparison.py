"""What a full list says otherwise than the cache, while a watch goes on feeding that."""

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.records.kubernetes import Decoded

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Held:
    """One object as it was decoded last."""

    version: str
    decoded: Decoded | None
    """None: an object that planning does not use (a Lease of someone else)."""


class Comparison:
    """Where a full list differs from what the cache holds; only the differences are kept.

    It begins before the list is asked for. The list is then newer than whatever had been told
    before; of what the watch tells of meanwhile the watch has the last word, as it will also tell
    of whatever the list was ahead of it. So versions, which may be anything, need not be ordered.

    Args:
        keys: Of the objects that are held now.
    """

    def __init__(self, keys: Iterable[Key]) -> None:
        self._told: set[Key] = set()
        self._missing = set(keys)
        self._other: dict[Key, Held] = {}

    def told(self, key: Key) -> None:
        """The watch told of an object: what the list says of it does not count."""
        self._told.add(key)

    def counts(self, key: Key) -> bool:
        """Whether what the list says of an object counts; it is not missing from it then."""
        self._missing.discard(key)
        return key not in self._told

    def differs(self, key: Key, held: Held) -> None:
        """The list has another version of an object, or one that is not held."""
        self._other[key] = held

    @property
    def agrees(self) -> bool:
        """Whether the list says nothing else than the cache."""
        return not self.other() and not self.missing()

    def other(self) -> dict[Key, Held]:
        """What is to be held instead."""
        return {key: held for key, held in self._other.items() if key not in self._told}

    def missing(self) -> set[Key]:
        """What is held and no longer there."""
        return self._missing - self._told
