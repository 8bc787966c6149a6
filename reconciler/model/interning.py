"""A bounded memory of what was made before: one object for equal values, one answer each time."""

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class InternTable(Generic[K, V]):
    """A bounded table from keys to the one value that stands for them.

    Two generations: what is used moves to the young one; when that is full, the old one is
    dropped. So a value in use survives, what nobody asks for goes, and at most twice
    `entries_max` are held. A value that was dropped and built again is a new object: callers may
    rely on identity for speed, never for correctness.
    """

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value of the key, or None when it is not known."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: K, value: V) -> V:
        """Keep a value; returns the one to use, which is the older one when there is one."""
        if len(self._young) >= self._entries_max:
            self._old, self._young = self._young, {}
        return self._young.setdefault(key, value)

    def get_or_build(self, key: K, build: Callable[[], V]) -> V:
        """The value of the key, built on the first call; a `build` that raises leaves nothing."""
        found = self.get(key)
        return found if found is not None else self.put(key, build())

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
