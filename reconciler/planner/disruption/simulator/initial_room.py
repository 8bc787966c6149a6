"""Free room before any move; a pod that does not fit into it fits nowhere later."""

from collections.abc import Sequence

import numpy as np

from reconciler.planner.placement.arrays import UNLIMITED, BoolArray, IntArray
from reconciler.planner.placement.classes import Group, PodClass
from reconciler.planner.placement.simulation import Simulation

TOGETHER_MAX = 2**18
"""How many classes times rows are computed together: a few arrays of two megabytes."""


Emptied = tuple[int, Sequence[Group]]
"""A row, and the pods that would leave it."""


class InitialRoom:
    """Upper bounds on how many pods of a class the staying rows take, by resources alone.

    They hold as long as pods only come to these rows: a look-up then shows that a node full of pods
    cannot be drained, and no move has to be tried. Over-subscription and shared volumes are left to
    the move itself, which finds less room.

    Args:
        sim: The what-if cluster as it is now.
        may_stay: A flag per row.
    """

    def __init__(self, sim: Simulation, may_stay: BoolArray) -> None:
        self._sim = sim
        self._may_stay = may_stay.copy()
        self._free = sim.free.copy()
        self._kinds = sim.kinds.copy()
        self._expected: Sequence[Emptied] = ()
        self._lacking: dict[int, tuple[Sequence[Group], bool]] = {}
        """By row: the pods that were expected to leave it, and whether they lack room."""

    def stays(self, rows: Sequence[int]) -> None:
        """Count these rows as staying too."""
        if not self._may_stay[rows].all():
            self._may_stay[rows] = True
            self.expect(self._expected)

    def lacks(self, row: int, groups: Sequence[Group]) -> bool:
        """Return whether the pods of one of the classes would not all fit on the other rows."""
        expected, lacking = self._lacking.get(row, (None, False))
        return lacking if expected is groups else self._lacking_room([(row, groups)])[0]

    def expect(self, emptied: Sequence[Emptied]) -> None:
        """Compute the answers for pods that may be asked about, which is cheaper together."""
        self._expected = emptied
        found = zip(emptied, self._lacking_room(emptied), strict=True)
        self._lacking = {row: (groups, lacking) for (row, groups), lacking in found}

    def _lacking_room(self, emptied: Sequence[Emptied]) -> list[bool]:
        """Return for each row whether the pods of one of the classes that leave it lack room."""
        places: dict[int, int] = {}
        classes: list[PodClass] = []
        place_of: list[int] = []
        for _, groups in emptied:
            for pod_class, _ in groups:
                place = places.setdefault(pod_class.number, len(classes))
                if place == len(classes):
                    classes.append(pod_class)
                place_of.append(place)
        asked = [len(pods) for _, groups in emptied for _, pods in groups]
        asker = np.repeat(np.arange(len(emptied)), [len(groups) for _, groups in emptied])
        rows = np.array([row for row, _ in emptied], dtype=np.int64)[asker]
        room = self._elsewhere(classes, np.array(place_of, dtype=np.int64), rows)
        short = set(asker[room < asked].tolist())
        return [number in short for number in range(len(emptied))]

    def _elsewhere(self, classes: Sequence[PodClass], place: IntArray, rows: IntArray) -> IntArray:
        """Return the room for `classes[place[i]]` on all rows except `rows[i]`."""
        found = np.zeros(len(place), dtype=np.int64)
        together = max(1, TOGETHER_MAX // max(1, len(self._free)))
        for begin in range(0, len(classes), together):
            room = self._room(classes[begin : begin + together])
            here = np.flatnonzero((place >= begin) & (place < begin + together))
            at = place[here] - begin
            found[here] = room.sum(axis=1)[at] - room[at, rows[here]]
        return found

    def _room(self, classes: Sequence[PodClass]) -> IntArray:
        """Return the room by class and row."""
        asked = np.array([c.requests for c in classes], dtype=np.int64)
        room = np.full((len(classes), len(self._free)), UNLIMITED, dtype=np.int64)
        for column in np.flatnonzero(asked.any(axis=0)):
            slots = self._free[:, column] // np.maximum(asked[:, column, None], 1)
            np.minimum(room, slots, out=room, where=asked[:, column, None] > 0)
        statics = {c.static: c for c in classes}
        admitted = {n: self._sim.admitted(c, self._kinds) for n, c in statics.items()}
        takes = np.array([admitted[c.static] for c in classes])
        return np.where(takes & self._may_stay, np.maximum(room, 0), 0)
