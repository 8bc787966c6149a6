"""A bounded cache of values: one object for equal values, computed once."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import ReferenceType, ref

K = TypeVar("K")
V = TypeVar("V")


class InternTable(Generic[K, V]):
    """A bounded table from keys to the one value that represents each.

    It has two generations: a value that is used moves to the young one, and when that is full the
    old one is dropped. So values in use stay, others are dropped, and at most twice `entries_max`
    are held, where a large value counts as several. A value that was dropped and built again is a
    new object: callers may use identity for speed, never for correctness.
    """

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._heavy: dict[K, int] = {}
        """Weights of known entries, where not 1."""
        self._filled = 0
        """Weight of the young generation."""

    def get(self, key: K) -> V | None:
        """Return the value of the key, or None when it is not known."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found, self._heavy.get(key, 1))
        return found

    def put(self, key: K, value: V, weight: int = 1) -> V:
        """Store a value; return the one to use, which is the stored one when there is one.

        Args:
            key: Its key.
            value: The value.
            weight: As how many usual entries it counts, at least 1.
        """
        known = self._young.get(key)
        if known is not None:
            return known
        if self._filled >= self._entries_max:
            self._old, self._young, self._filled = self._young, {}, 0
            self._heavy = {key: n for key, n in self._heavy.items() if key in self._old}
        if weight > 1:
            self._heavy[key] = weight
        self._filled += weight
        self._young[key] = value
        return value

    def get_or_build(self, key: K, build: Callable[[], V], weight: int = 1) -> V:
        """Return the key's value, built on the first call; errors of `build` are not stored."""
        found = self.get(key)
        return found if found is not None else self.put(key, build(), weight)

    def discard(self, key: K) -> None:
        """Remove an entry, if there is one; its weight counts until its generation is dropped."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        """Remove all entries."""
        self._young, self._old, self._heavy, self._filled = {}, {}, {}, 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


References = tuple[ReferenceType[Any], ...]


def released_with(table: InternTable[K, V], key: K, *objects: object) -> References:
    """Return what an entry has to hold, so that it is removed when one of the objects is gone.

    For tables with identities as keys: an entry that held the objects themselves would keep what a
    tenant wrote once in memory, for as long as nothing else fills the table.
    """
    known = ref(table)

    def remove(_gone: ReferenceType[Any]) -> None:
        intern_table = known()
        if intern_table is not None:
            intern_table.discard(key)

    return tuple([ref(each, remove) for each in objects])
