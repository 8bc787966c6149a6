"""The patterns that a program knows: what a node of an offer may hold, each once."""

from abc import ABC, abstractmethod

import numpy as np

from reconciler.planner.placement.arrays import IntArray


class Patterns:
    """Patterns in the order in which a program got them as columns."""

    def __init__(self, items: int) -> None:
        self.offers: IntArray = np.zeros(0, dtype=np.int64)
        """(patterns,)"""
        self.amounts: IntArray = np.zeros((0, items), dtype=np.int64)
        """(patterns, items)"""
        self._known: set[bytes] = set()

    def fresh(self, offers: IntArray, amounts: IntArray) -> tuple[IntArray, IntArray]:
        """Return the patterns not seen before, and remember them."""
        new = []
        for index in _unlike_the_one_before(offers, amounts):
            key = offers[index].tobytes() + amounts[index].tobytes()
            if key not in self._known:
                self._known.add(key)
                new.append(index)
        found = offers[new], amounts[new]
        if new:
            self.offers = np.append(self.offers, found[0])
            self.amounts = np.vstack([self.amounts, found[1]])
        return found


class PatternProgram(ABC):
    """A program whose columns are patterns, each of them once.

    Args:
        items: How many items there are.
    """

    def __init__(self, items: int) -> None:
        self._patterns = Patterns(items)

    @property
    def offers(self) -> IntArray:
        """Return (patterns,) the offer of each."""
        return self._patterns.offers

    @property
    def amounts(self) -> IntArray:
        """Return (patterns, items) what each holds."""
        return self._patterns.amounts

    def add(self, offers: IntArray, amounts: IntArray) -> int:
        """Add the patterns that are new; return how many were."""
        found = self._patterns.fresh(offers, amounts)
        if len(found[0]):
            self._add_columns(*found)
        return len(found[0])

    @abstractmethod
    def _add_columns(self, offers: IntArray, amounts: IntArray) -> None:
        """Add a column for each of these new patterns."""


def _unlike_the_one_before(offers: IntArray, amounts: IntArray) -> list[int]:
    """Return the indices of patterns that differ from the one before.

    Packings repeat equal nodes.
    """
    changed = np.ones(len(offers), dtype=np.bool_)
    changed[1:] = (offers[1:] != offers[:-1]) | (amounts[1:] != amounts[:-1]).any(axis=1)
    return list(changed.nonzero()[0].tolist())
