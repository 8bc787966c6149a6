"""Which nodes topology spread constraints count (nodeAffinityPolicy, nodeTaintsPolicy)."""

from collections.abc import Sequence

import numpy as np

from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.filters import static
from reconciler.planner.placement.kinds import KindTable
from reconciler.planner.placement.static_constraints import StaticConstraints

_UNKNOWN = -1
_NO_KINDS: BoolArray = np.zeros(0, dtype=np.bool_)


class EligibleKinds:
    """The node kinds that a spread constraint counts, by its honour flags and static constraints.

    Thousands of classes may each have static constraints of their own, so they are asked about
    together.
    """

    def __init__(self, statics: Sequence[StaticConstraints], table: KindTable) -> None:
        self._statics = statics
        self._table = table
        self._numbers: dict[tuple[int, bool, bool], int] = {}
        self._asked: list[tuple[int, bool, bool]] = []
        self._answers = np.zeros((0, 0), dtype=np.int8)
        """By number and node kind; `_UNKNOWN` if not asked for yet."""
        self._known: list[int] = []
        """By number, for how many kinds the answer is known."""

    def number(self, static_number: int, *, honor_affinity: bool, honor_taints: bool) -> int:
        """Return the number that stands for these from now on."""
        asked = (static_number, honor_affinity, honor_taints)
        known = self._numbers.get(asked)
        if known is None:
            known = self._numbers[asked] = len(self._asked)
            self._asked.append(asked)
            self._known.append(0)
        return known

    def kinds(self, number: int) -> BoolArray:
        """Return for each node kind whether it is counted."""
        count = len(self._table.kinds)
        if not count:
            return _NO_KINDS
        if self._known[number] < count:
            self._ask(number)
        return np.asarray(self._answers[number, :count] > 0)

    def at(self, numbers: IntArray, kind: int) -> BoolArray:
        """Return by which of these numbers a node of a kind is counted."""
        self._make_room()
        found = self._answers[numbers, kind]
        unknown = numbers[found == _UNKNOWN]
        if len(unknown):
            for number in np.unique(unknown).tolist():
                self._ask(number)
            found = self._answers[numbers, kind]
        return np.asarray(found > 0)

    def _ask(self, number: int) -> None:
        static_number, affinity, taints = self._asked[number]
        self._make_room()
        first = self._known[number]
        found = static.eligible_kinds(
            self._statics[static_number],
            self._table,
            first,
            honor_affinity=affinity,
            honor_taints=taints,
        )
        self._known[number] = first + len(found)
        self._answers[number, first : first + len(found)] = found

    def _make_room(self) -> None:
        there = self._answers.shape
        needed = len(self._asked), len(self._table.kinds)
        if there[0] >= needed[0] and there[1] >= needed[1]:
            return
        room = [t if t >= n else max(n, 2 * t, 16) for t, n in zip(there, needed, strict=True)]
        before, self._answers = self._answers, np.full(room, _UNKNOWN, dtype=np.int8)
        self._answers[: there[0], : there[1]] = before
