"""Moving all pods of a node to nodes that stay: simulated together, kept or undone together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from reconciler.model.actions import DRAINING_TAINT
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.ids import NodeName
from reconciler.model.plan import Placement
from reconciler.planner.cycle import Cycle
from reconciler.planner.inventory import is_draining
from reconciler.planner.node_rows import node_row
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import Group, PodClass
from reconciler.planner.placement.fill import fill, tightness
from reconciler.planner.placement.filters import resources
from reconciler.planner.placement.simulation import RowSpec
from reconciler.planner.room_at_first import RoomAtFirst

SPREAD_PODS_MAX = 200
"""Where the config lets hundreds of nodes with pods go at once, the last moves have to do."""
_DRAINING = Taint(key=DRAINING_TAINT, value="scale-in", effect="NoSchedule")


@dataclass(slots=True, eq=False)
class Moves:
    """Where the pods of one node go."""

    node: Node
    parts: list[tuple[list[Pod], list[tuple[int, int]]]]
    """Pods of a class, and the rows and amounts that take them, in order."""
    rows: list[int]
    """Destinations."""
    taken: list[tuple[PodClass, int, int]]
    """Class, destination, amount."""


Begun = tuple[Moves, Sequence[Group]]
"""Moves that are made, and the pods that they move."""


@dataclass(slots=True, eq=False)
class Mark:
    """A moment to go back to."""

    journal: tuple[int, int]
    out: tuple[tuple[int, NodeName, set[int]], ...]
    staying: BoolArray


class Mover:
    """Takes nodes out of the what-if cluster, their pods going to nodes that stay."""

    def __init__(
        self,
        cycle: Cycle,
        leaving: Iterable[NodeName] = (),
        last: Sequence[NodeName] = (),
        begun: Iterable[Begun] = (),
    ) -> None:
        """See the class.

        Args:
            cycle: The plan's what-if cluster.
            leaving: They are no destinations.
            last: The nodes to fill last, in this order.
            begun: Moves of drains under way, whose pods are yet to come.
        """
        self._cycle = cycle
        self.staying: BoolArray = np.zeros(cycle.sim.rows, dtype=np.bool_)
        self._rows_at_first = cycle.sim.rows
        self.receiving: set[int] = set()
        self._out: list[tuple[int, NodeName, set[int]]] = []
        self._begun = list(begun)
        """Moves that stay: kube-scheduler will spread their pods too."""
        gone = set(leaving) | cycle.inventory.leaving | cycle.inventory.orphans.nodes
        for name, node in cycle.nodes.items():
            if not is_draining(node) and name not in gone:
                self.staying[cycle.row_of[name]] = True
        self._order = self._filling_order([cycle.row_of[name] for name in last])
        self.room_at_first = RoomAtFirst(cycle.sim, self.staying)

    def _filling_order(self, last: list[int]) -> IntArray:
        """The fullest first, so that few nodes fill up; those that may leave themselves last."""
        late = np.zeros(self._cycle.sim.rows, dtype=np.bool_)
        late[last] = True
        order = tightness(self._cycle.sim)
        return np.concatenate([order[~late[order]], np.array(last, dtype=np.int64)])

    def mark(self) -> Mark:
        """Remember this moment."""
        return Mark(
            journal=self._cycle.sim.fork(),
            out=tuple(self._out),
            staying=self.staying.copy(),
        )

    def undo(self, mark: Mark) -> None:
        """Put back every node that was moved since, with its pods."""
        cycle = self._cycle
        for row, name, _ in reversed(self._out[len(mark.out) :]):
            cycle.sim.set_schedulable(row, node_row(cycle.nodes[name]))
        self.staying = mark.staying.copy()
        self._out = list(mark.out)
        self.receiving = {row for _, _, rows in self._out for row in rows}
        cycle.sim.revert(mark.journal)

    def staying_alone(self, node: Node) -> bool:
        """Whether the node stays so far, and no pods of nodes that leave come to it."""
        row = self._cycle.row_of[node.name]
        return bool(self.staying[row]) and row not in self.receiving

    def add_row(self, spec: RowSpec) -> int:
        """A node that is asked for: it takes pods only where it is named."""
        row = self._cycle.sim.add_row(spec)
        self.staying = np.append(self.staying, np.zeros(1, dtype=np.bool_))
        return row

    def move(self, node: Node, groups: Sequence[Group], also: Sequence[int] = ()) -> Moves | None:
        """Find every pod a place among the nodes that stay; None, and nothing changed, if not.

        The node counts as tainted meanwhile, for rules on how pods spread. Its pods are taken off
        before it is, and put back after, so that counters see the same node both times.

        Args:
            node: The node that leaves.
            groups: Its pods that have to move.
            also: Further rows that may take them, after all others.
        """
        cycle, row = self._cycle, self._cycle.row_of[node.name]
        if self._is_hopeless(row, groups, also):
            return None
        before = self.mark()
        for pod_class, pods in groups:
            cycle.sim.place(pod_class, np.array([row]), np.array([-len(pods)]))
        tainted = (*node.taints, _DRAINING)
        cycle.sim.set_schedulable(row, node_row(node, taints=tainted, closed=True))
        self.staying[row] = False
        self._out.append((row, node.name, set()))
        among, order = self._open_to(also)
        parts: list[tuple[list[Pod], list[tuple[int, int]]]] = []
        rows: set[int] = set()
        all_taken: list[tuple[PodClass, int, int]] = []
        for pod_class, pods in groups:
            taken = fill(cycle.sim, pod_class, len(pods), among, order)
            if sum(amount for _, amount in taken) < len(pods):
                self.undo(before)
                return None
            parts.append((pods, taken))
            rows.update(at for at, _ in taken)
            all_taken += [(pod_class, at, amount) for at, amount in taken]
        self._out[-1] = (row, node.name, rows)
        self.receiving |= rows
        return Moves(node=node, parts=parts, rows=sorted(rows), taken=all_taken)

    def begin(self, moves: Moves, groups: Sequence[Group]) -> None:
        """The moves stay: whatever moves after them has to find room beside them.

        An idle node among the destinations stays for good, with the room that is left on it.
        """
        self._begun.append((moves, groups))
        self._stay(moves.rows)

    def _stay(self, rows: Sequence[int]) -> None:
        """Idle nodes among these stay as well."""
        self.staying[rows] = True
        self.room_at_first.stays([row for row in rows if row < self._rows_at_first])

    def survives_spreading(self, moves: Moves, groups: Sequence[Group]) -> bool:
        """Whether the pods that were just moved would all fit where kube-scheduler puts them.

        It takes each for the node with the most room left (LeastAllocated), not for the fullest
        that will do, as they come: in the order in which they are evicted, those of StatefulSets
        after the others, or by priority when several wait. What fits packed tightly may then not
        fit. Pods of one class always do: each node takes as many of them in any order. Pods of
        moves that were begun before are spread along with them, up to some hundreds.
        """
        every = [*_latest(self._begun), (moves, groups)]
        if len({c.number for _, parts in every for c, _ in parts}) < 2:
            return True
        evicted = [each for _, parts in every for each in _as_evicted(parts)]
        at_once = [c for pod, c in evicted if not waits_for_its_end(pod)]
        in_time = [*at_once, *(c for pod, c in evicted if waits_for_its_end(pod))]
        orders = [[c for _, c in evicted], in_time, sorted(in_time, key=_lowest_last)]
        distinct = [order for n, order in enumerate(orders) if order not in orders[:n]]
        return all(self._fit_spread([m for m, _ in every], order) for order in distinct)

    def spread(self, moves: Moves, groups: Sequence[Group], also: Sequence[int]) -> None:
        """Have the pods that were just moved go where kube-scheduler puts them, as far as they fit.

        Undone with a mark from before.

        Args:
            moves: The last moves.
            groups: Their pods.
            also: Idle rows, to which the plan would not move them: kube-scheduler does.
        """
        self._stay([*moves.rows, *also])
        rows = self._spread([moves], [c for _, c in _as_evicted(groups)], self.staying)
        row, name, _ = self._out[-1]
        self._out[-1] = (row, name, set(rows))
        self.receiving = {row for _, _, rows in self._out for row in rows}

    def _fit_spread(self, moved: Sequence[Moves], classes: Sequence[PodClass]) -> bool:
        """Whether pods of these classes all find room one after the other; nothing is changed."""
        sim = self._cycle.sim
        mark = sim.fork()
        rows = self._spread(moved, classes, self._with([r for m in moved for r in m.rows]))
        sim.revert(mark)
        return len(rows) == len(classes)

    def _spread(
        self, moved: Sequence[Moves], classes: Sequence[PodClass], among: BoolArray
    ) -> list[int]:
        """Take what was moved off again, and place pods of these classes one after the other.

        Returns:
            Where they went, up to the first that fits nowhere.
        """
        sim = self._cycle.sim
        for moves in moved:
            for pod_class, row, amount in moves.taken:
                sim.place(pod_class, np.array([row]), np.array([-amount]))
        rows: list[int] = []
        for each in classes:
            chosen = self._spread_one(each, among)
            if chosen is None:
                break
            rows.append(chosen)
        return rows

    def _spread_one(self, pod_class: PodClass, among: BoolArray) -> int | None:
        """Place one pod on the row with the most room left; None when none takes it."""
        sim = self._cycle.sim
        open_rows = (np.where(among, sim.room(pod_class), 0) > 0).nonzero()[0]
        if not len(open_rows):
            return None
        offers = np.maximum(sim.offers[open_rows, :2], 1)
        share = (sim.free[open_rows, :2] / offers).mean(axis=1)
        chosen = open_rows[[int(share.argmax())]]
        sim.place(pod_class, chosen, np.ones(1, dtype=np.int64))
        return int(chosen[0])

    def fits(
        self, node: Node, groups: Sequence[Group], also: Sequence[int], *, spread: bool = False
    ) -> bool:
        """Whether `move` would succeed, and survive spreading if asked; nothing is changed."""
        mark = self.mark()
        found = self.move(node, groups, also)
        fits = found is not None and not (spread and not self.survives_spreading(found, groups))
        self.undo(mark)
        return fits

    def _open_to(self, also: Sequence[int]) -> tuple[BoolArray, IntArray]:
        """The rows that may take pods, and the order in which they do."""
        if not also:
            return self.staying, self._order
        more = np.array(also, dtype=np.int64)
        others = self._order[~np.isin(self._order, more)]
        return self._with(also), np.concatenate([others, more])

    def _with(self, also: Sequence[int]) -> BoolArray:
        """The rows that stay and these, which may have been added since."""
        among = np.zeros(self._cycle.sim.rows, dtype=np.bool_)
        among[: len(self.staying)] = self.staying
        among[list(also)] = True
        return among

    def _is_hopeless(self, row: int, groups: Sequence[Group], also: Sequence[int]) -> bool:
        """Whether resources alone say that the pods find no place: most nodes are asked in vain."""
        as_at_first = not (also or self.staying[self._rows_at_first :].any())
        if as_at_first and self.room_at_first.lacks(row, groups):
            return True
        return self._lacks_resources(row, groups, also)

    def _lacks_resources(self, row: int, groups: Sequence[Group], also: Sequence[int]) -> bool:
        """Whether the nodes that take any of the pods have less CPU or memory left than all ask."""
        sim = self._cycle.sim
        takes = np.zeros(sim.rows, dtype=np.bool_)
        for pod_class in {c.static: c for c, _ in groups}.values():
            takes |= sim.admitted(pod_class)
        open_rows = self._with(also)
        open_rows[row] = False
        free = sim.available()[open_rows & takes, : resources.CPU_AND_MEMORY]
        left = np.maximum(free, 0).sum(axis=0)
        asked = sum(c.requests[: resources.CPU_AND_MEMORY] * len(pods) for c, pods in groups)
        return bool((left < asked).any())


def placements_of(cycle: Cycle, moves: Moves) -> list[Placement]:
    """Where each pod goes; asked for only when the moves are to be made, most are but tried."""
    return [
        Placement(pod=pod.key, node=cycle.row_name(row), moved_from=moves.node.name)
        for row, pods in _dealt(moves)
        for pod in pods
    ]


def arrivals_of(moves: Moves) -> dict[int, list[Pod]]:
    """The pods that come to each row."""
    found: dict[int, list[Pod]] = {}
    for row, pods in _dealt(moves):
        found.setdefault(row, []).extend(pods)
    return found


def _dealt(moves: Moves) -> Iterator[tuple[int, list[Pod]]]:
    """Rows and the pods of one class that come there, in order."""
    for pods, taken in moves.parts:
        rest = iter(pods)
        for row, amount in taken:
            yield row, list(islice(rest, amount))


def grouped(cycle: Cycle, pods: Iterable[Pod]) -> list[Group]:
    """Pods by class, in the order in which they are hardest to place."""
    found: dict[int, Group] = {}
    of = cycle.table.of
    for pod in pods:
        pod_class = of(pod, bound=True)
        known = found.get(pod_class.number)
        if known is None:
            found[pod_class.number] = (pod_class, [pod])
        else:
            known[1].append(pod)
    return sorted(found.values(), key=_hardest_first)


def waits_for_its_end(pod: Pod) -> bool:
    """Whether what replaces the pod comes only when it is gone, as a StatefulSet's does.

    A ReplicaSet makes another pod as soon as the deletion has begun.
    """
    return pod.owner is not None and pod.owner.kind == "StatefulSet"


def _latest(begun: Sequence[Begun]) -> list[Begun]:
    """The last moves begun, as many as can be spread again in a short time, in their order."""
    found: list[Begun] = []
    pods = 0
    for moves, groups in reversed(begun):
        pods += sum(len(members) for _, members in groups)
        if pods > SPREAD_PODS_MAX:
            break
        found.append((moves, groups))
    return found[::-1]


def _as_evicted(groups: Sequence[Group]) -> list[tuple[Pod, PodClass]]:
    """Pods and their classes in the order of `drains.evictions`."""
    pods = [(pod, pod_class) for pod_class, members in groups for pod in members]
    return sorted(pods, key=lambda each: each[0].key)


def _lowest_last(pod_class: PodClass) -> int:
    """The order in which kube-scheduler takes what waits."""
    return -pod_class.spec.priority


def _hardest_first(group: Group) -> tuple[object, ...]:
    """By priority, then CPU and memory relative to each other, then name."""
    requests = group[0].spec.requests
    size = max(requests.get("cpu", 0) / 1000, requests.get("memory", 0) / 2**32)
    return (-group[0].spec.priority, -size, group[1][0].key)
