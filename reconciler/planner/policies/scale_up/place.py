"""Placing demand on rows that are there: nominated nodes, nodes, launching capacity."""

from collections.abc import Sequence

import numpy as np

from reconciler.planner.cycle import Cycle, WaitingClass
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.fill import fill, tightness
from reconciler.planner.placement.preferences import Preferences

CHAIN_MAX = 16
"""Pods that must be near others that must be near others: so many links one plan follows at most,
the next plans follow the rest. One tenant's chain must not take the time of all."""

Placed = list[tuple[WaitingClass, list[tuple[int, int]]]]
"""Class, and its rows and amounts."""


def place_on_nominated(cycle: Cycle) -> None:
    """A pod with a nominated node has preempted its room there: the room is taken already.

    A node that has turned unready or is leaving since takes no pod: such a nomination is void.
    """
    one = np.ones(1, dtype=np.int64)
    for waiting in cycle.waiting:
        if not waiting.nominated:
            continue
        named = {
            pod.key: row
            for pod in waiting.pods
            if pod.nominated_node_name is not None
            and (row := cycle.row_of.get(pod.nominated_node_name)) is not None
        }
        if not named:
            continue
        admitted = cycle.sim.admitted(waiting.pod_class)
        rows = {key: row for key, row in named.items() if admitted[row]}
        waiting.pods = [
            *(p for p in waiting.pods if p.key in rows),
            *(p for p in waiting.pods if p.key not in rows),
        ]
        for row in [rows[pod.key] for pod in waiting.pods[: len(rows)]]:
            cycle.sim.place(waiting.pod_class, np.array([row], dtype=np.int64), one)
            cycle.reserve(waiting, [row], [1])


def place_on_existing(cycle: Cycle) -> None:
    """Nodes first, then launching capacity, each class in order of priority and size.

    Soft terms say which of several nodes, as long as that leaves the same pods waiting.
    When that leaves some waiting, the classes with the fewest rows to choose from go first within
    a priority: capacity that was bought for them must not be lost to pods that fit elsewhere too.
    """
    seated = np.zeros(cycle.sim.rows, dtype=np.bool_)
    seated[list(cycle.planned_nodes)] = True
    order = tightness(cycle.sim)
    mark = cycle.sim.fork()
    preferences = Preferences(cycle.sim, [cycle.nodes[name] for name in cycle.row_of])
    placed = _attempt(cycle, cycle.waiting, seated, order, preferences)
    if any(_left(cycle.waiting, placed)):
        if preferences.matter([w.pod_class for w in cycle.waiting]):
            cycle.sim.revert(mark)
            placed = _cheaper(cycle, placed, _attempt(cycle, cycle.waiting, seated, order))
        placed = _better(cycle, placed, mark, seated, order)
    for waiting, taken in placed:
        _reserve(cycle, waiting, taken)


def _cheaper(cycle: Cycle, liked: Placed, plain: Placed) -> Placed:
    """What was placed by preference, unless that leaves others waiting, or more."""
    same = _waiting_still(cycle, liked) == _waiting_still(cycle, plain)
    return liked if same or _left(cycle.waiting, liked) < _left(cycle.waiting, plain) else plain


def _waiting_still(cycle: Cycle, placed: Placed) -> dict[int, int]:
    """How many pods of each class find no place."""
    left = {id(waiting): waiting.left for waiting in cycle.waiting}
    for waiting, taken in placed:
        left[id(waiting)] -= _total(taken)
    return left


def _better(
    cycle: Cycle, placed: Placed, mark: tuple[int, int], seated: BoolArray, order: IntArray
) -> Placed:
    """The choosiest classes first instead, where that leaves fewer pods waiting."""
    cycle.sim.revert(mark)
    choice = {w.pod_class.number: _choice(cycle, w) for w in cycle.waiting}
    before = _left(cycle.waiting, placed)
    if any(choice[w.pod_class.number] for w in _unserved(cycle.waiting, placed)):
        choosy = sorted(
            cycle.waiting, key=lambda w: (-w.pod_class.spec.priority, choice[w.pod_class.number])
        )
        other = _attempt(cycle, choosy, seated, order)
        if _left(cycle.waiting, other) < before:
            return other
        cycle.sim.revert(mark)
    for waiting, taken in placed:
        for row, amount in taken:
            cycle.sim.place(waiting.pod_class, np.array([row]), np.array([amount]))
    return placed


def _unserved(classes: Sequence[WaitingClass], placed: Placed) -> list[WaitingClass]:
    """The classes of which some pods still wait."""
    taken: dict[int, int] = {}
    for waiting, parts in placed:
        taken[id(waiting)] = taken.get(id(waiting), 0) + _total(parts)
    return [w for w in classes if w.left > taken.get(id(w), 0)]


def _total(taken: list[tuple[int, int]]) -> int:
    return sum(amount for _, amount in taken)


def _attempt(
    cycle: Cycle,
    classes: Sequence[WaitingClass],
    seated: BoolArray,
    order: IntArray,
    preferences: Preferences | None = None,
) -> Placed:
    """Place the classes one after the other in the simulation; nothing is promised yet.

    Pods that must be near others may find those only when a class after theirs has its places:
    what is left of such classes is asked about again for as long as that places any.
    """
    placed: Placed = []
    left = {id(waiting): waiting.left for waiting in classes}
    asked = list(classes)
    for _ in range(CHAIN_MAX):
        found = 0
        for waiting in asked:
            for among in (~seated, seated):
                count = left[id(waiting)]
                if count and among.any():
                    ask = (waiting.pod_class, count, among, order)
                    taken = preferences.fill(*ask) if preferences else fill(cycle.sim, *ask)
                    placed.append((waiting, taken))
                    left[id(waiting)] -= _total(taken)
                    found += _total(taken)
        asked = [w for w in asked if left[id(w)] and _follows_others(cycle, w)]
        if not (asked and found):
            break
    return placed


def _follows_others(cycle: Cycle, waiting: WaitingClass) -> bool:
    """Whether its pods must be near pods that are none of its own."""
    links = cycle.sim.links(waiting.pod_class)
    return bool(links.affinity) and not links.affinity_itself


def _choice(cycle: Cycle, waiting: WaitingClass) -> int:
    """How many rows could take a pod of the class, the rules between pods aside."""
    room = cycle.sim.resource_room(waiting.pod_class) > 0
    return int((room & cycle.sim.admitted(waiting.pod_class)).sum())


def _left(classes: Sequence[WaitingClass], placed: Placed) -> list[int]:
    """How many pods still wait, by priority from the highest."""
    left: dict[int, int] = {}
    for waiting in classes:
        priority = waiting.pod_class.spec.priority
        left[priority] = left.get(priority, 0) + waiting.left
    for waiting, taken in placed:
        left[waiting.pod_class.spec.priority] -= _total(taken)
    return [left[priority] for priority in sorted(left, reverse=True)]


def fill_class(cycle: Cycle, waiting: WaitingClass, among: BoolArray, order: IntArray) -> None:
    """Reservation as many of the class's pods as rows of `among` take."""
    if waiting.left and among.any():
        _reserve(cycle, waiting, fill(cycle.sim, waiting.pod_class, waiting.left, among, order))


def _reserve(cycle: Cycle, waiting: WaitingClass, taken: list[tuple[int, int]]) -> None:
    cycle.reserve(waiting, [row for row, _ in taken], [amount for _, amount in taken])
