"""The patterns that a program knows: what a node of an offer may hold, each once."""

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
        """Those of some patterns that are new; they are known from now on."""
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


def _unlike_the_one_before(offers: IntArray, amounts: IntArray) -> list[int]:
    """Packings come with long runs of equal nodes."""
    changed = np.ones(len(offers), dtype=np.bool_)
    changed[1:] = (offers[1:] != offers[:-1]) | (amounts[1:] != amounts[:-1]).any(axis=1)
    return list(changed.nonzero()[0].tolist())
