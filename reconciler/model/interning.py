"""A bounded memory of what was made before: one object for equal values, one answer each time."""

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class InternTable(Generic[K, V]):
    """A bounded table from keys to the one value that stands for them.

    Two generations: what is used moves to the young one; when that is full, the old one is
    dropped. So a value in use survives, a value out of use goes, and at most twice
    `entries_max` are held, where a large one counts as several. A value that was dropped and
    built again is a new object: callers may rely on identity for speed, never for correctness.
    """

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._heavy: dict[K, int] = {}
        """Weights of known entries other than 1."""
        self._filled = 0
        """Weight of the young generation."""

    def get(self, key: K) -> V | None:
        """The value of the key, or None when it is not known."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found, self._heavy.get(key, 1))
        return found

    def put(self, key: K, value: V, weight: int = 1) -> V:
        """Keep a value; returns the one to use, which is the older one when there is one.

        Args:
            key: What it is found by.
            value: The value.
            weight: How many usual entries it stands for, at least 1.
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
        """The value of the key, built on the first call; a `build` that raises leaves nothing."""
        found = self.get(key)
        return found if found is not None else self.put(key, build(), weight)

    def clear(self) -> None:
        """Forget everything."""
        self._young, self._old, self._heavy, self._filled = {}, {}, {}, 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
