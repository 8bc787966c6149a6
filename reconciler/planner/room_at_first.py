"""The room that there was before anything was moved: what does not fit there fits nowhere."""

from collections.abc import Iterable, Sequence

import numpy as np

from reconciler.planner.placement.arrays import UNLIMITED, BoolArray, IntArray
from reconciler.planner.placement.classes import Group, PodClass
from reconciler.planner.placement.simulation import Simulation

TOGETHER_MAX = 2**18
"""Classes times rows that are looked at together: a few arrays of two megabytes."""


class RoomAtFirst:
    """How many pods of a class the rows that may stay would take, by resources alone.

    An upper bound for as long as pods only come to these rows: a look-up tells that nodes full of
    pods cannot be emptied, and no move has to be tried. Over-subscription and shared volumes are
    left to the move itself, which finds less room.

    Args:
        sim: The what-if cluster as it is now.
        may_stay: A flag per row.
    """

    def __init__(self, sim: Simulation, may_stay: BoolArray) -> None:
        self._sim = sim
        self._may_stay = may_stay.copy()
        self._free = sim.available().copy()
        self._kinds = sim.kinds.copy()
        self._total: dict[int, int] = {}
        """By number of the class."""
        self._own: dict[tuple[int, int], int] = {}
        """By number of the class, and the row that the pods would leave."""

    def stays(self, rows: Sequence[int]) -> None:
        """These rows may stay as well."""
        if not self._may_stay[rows].all():
            self._may_stay[rows] = True
            self._total.clear()
            self._own.clear()

    def lacks(self, row: int, groups: Sequence[Group]) -> bool:
        """Whether the pods of one of the classes would not all fit on the other rows."""
        self.expect([(row, groups)])
        return any(self._total[c.number] - self._own[c.number, row] < len(p) for c, p in groups)

    def expect(self, leaving: Iterable[tuple[int, Sequence[Group]]]) -> None:
        """Look at the room for pods that may be asked about: together it costs less.

        Args:
            leaving: Rows, and the pods that would leave each.
        """
        classes: dict[int, PodClass] = {}
        rows_of: dict[int, list[int]] = {}
        for row, groups in leaving:
            for pod_class, _ in groups:
                if (pod_class.number, row) not in self._own:
                    classes[pod_class.number] = pod_class
                    rows_of.setdefault(pod_class.number, []).append(row)
        unknown = list(classes.values())
        together = max(1, TOGETHER_MAX // max(1, len(self._free)))
        for begin in range(0, len(unknown), together):
            part = unknown[begin : begin + together]
            room = self._room(part)
            for pod_class, total, rooms in zip(part, room.sum(axis=1).tolist(), room, strict=True):
                rows, number = rows_of[pod_class.number], pod_class.number
                self._total[number] = total
                own = zip(rows, rooms[rows].tolist(), strict=True)
                self._own.update(((number, row), free) for row, free in own)

    def _room(self, classes: Sequence[PodClass]) -> IntArray:
        """Room by class and row."""
        asked = np.array([c.requests for c in classes], dtype=np.int64)
        room = np.full((len(classes), len(self._free)), UNLIMITED, dtype=np.int64)
        for column in np.flatnonzero(asked.any(axis=0)):
            slots = self._free[:, column] // np.maximum(asked[:, column, None], 1)
            np.minimum(room, slots, out=room, where=asked[:, column, None] > 0)
        statics = {c.static: c for c in classes}
        admitted = {n: self._sim.admitted(c, self._kinds) for n, c in statics.items()}
        takes = np.array([admitted[c.static] for c in classes])
        return np.where(takes & self._may_stay, np.maximum(room, 0), 0)
