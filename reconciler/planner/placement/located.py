"""Where the pods of each class are: running, reserved, and daemons on imagined rows."""

from collections.abc import Sequence

import numpy as np

from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.daemons import ImaginedDaemons

At = tuple[IntArray, IntArray]
"""Rows, which may repeat, and how many pods are on each."""
_NOWHERE: At = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


class LocatedPods:
    """On which rows the pods of each class are."""

    def __init__(self, daemons: ImaginedDaemons) -> None:
        self._daemons = daemons
        self._loaded: dict[int, list[At]] = {}
        """Running pods, by class number."""
        self._placed: dict[int, list[At]] = {}
        """Reservations that were not undone, by class number."""
        self._sorted: tuple[IntArray, IntArray, IntArray] | None = None
        """Rows of running pods by class number, the start of each class, and their number; None
        if not computed yet."""

    def load(self, number: int, at: At) -> None:
        """Note running pods of a class."""
        self._loaded.setdefault(number, []).append(at)
        self._sorted = None

    def place(self, number: int, at: At) -> None:
        """Note a reservation."""
        self._placed.setdefault(number, []).append(at)

    def take_back(self, number: int) -> None:
        """Undo the last reservation of a class."""
        of_class = self._placed[number]
        of_class.pop()
        if not of_class:
            del self._placed[number]

    def of_all(self, numbers: IntArray) -> At:
        """Return where the pods of several classes are, in one go.

        Args:
            numbers: The numbers of the classes, in order.
        """
        parts: list[At] = []
        if len(numbers) == 1:
            # The usual case, and also that of a chain of thousands of rules.
            parts += self._loaded.get(int(numbers[0]), ())
        else:
            rows = self._running(numbers)
            parts.append((rows, np.ones(len(rows), dtype=np.int64)))
        for noted in (self._placed, self._daemons.noted):
            if noted:
                for number in _both(numbers, noted):
                    parts += noted[number]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return _NOWHERE
        every, amounts = zip(*parts, strict=True)
        return np.concatenate(every), np.concatenate(amounts)

    def _running(self, numbers: IntArray) -> IntArray:
        """Return the rows of the running pods of these classes."""
        if self._sorted is None:
            self._sorted = _by_number(self._loaded)
        rows, first, count = self._sorted
        there = numbers[numbers < len(first)]
        counts = count[there]
        before = np.cumsum(counts) - counts
        at = np.arange(int(counts.sum())) + np.repeat(first[there] - before, counts)
        found: IntArray = rows[at]
        return found


def _by_number(noted: dict[int, list[At]]) -> tuple[IntArray, IntArray, IntArray]:
    """Return the rows of all classes, and by number where those of a class start and end."""
    count = np.zeros(max(noted, default=-1) + 1, dtype=np.int64)
    parts = [np.zeros(0, dtype=np.int64)]
    for number in sorted(noted):
        parts += [rows for rows, _ in noted[number]]
        count[number] = sum(len(rows) for rows, _ in noted[number])
    return np.concatenate(parts), np.cumsum(count) - count, count


def _both(numbers: IntArray, noted: dict[int, list[At]]) -> Sequence[int]:
    """Return those of the numbers for which something is noted."""
    if len(numbers) <= len(noted):
        return [number for number in numbers.tolist() if number in noted]
    known = np.fromiter(noted, dtype=np.int64, count=len(noted))
    at = np.minimum(np.searchsorted(numbers, known), len(numbers) - 1)
    found: list[int] = known[numbers[at] == known].tolist()
    return found
