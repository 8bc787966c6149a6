"""The drain simulator: the what-if cluster without the nodes that leave."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from reconciler.model.actions import DRAINING_TAINT
from reconciler.model.cluster import Node, Taint
from reconciler.model.ids import NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.simulator.initial_room import InitialRoom
from reconciler.planner.disruption.simulator.relocation import Relocation, successors
from reconciler.planner.disruption.simulator.spreading import (
    SoftTaints,
    fit_spread,
    latest,
    orders_of_arrival,
    spread_over,
)
from reconciler.planner.node_rows import node_row
from reconciler.planner.nodes.drain_taints import has_soft_taint
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import Group, PodClass
from reconciler.planner.placement.fill import fill, tightness
from reconciler.planner.placement.filters.resources import CPU_AND_MEMORY
from reconciler.planner.placement.preferences import Preferences
from reconciler.planner.placement.simulation import MOVES, RowSpec

_DRAINING = Taint(key=DRAINING_TAINT, value="scale-in", effect="NoSchedule")


@dataclass(slots=True, eq=False)
class Checkpoint:
    """A checkpoint of the what-if cluster."""

    journal: tuple[int, int]
    out: tuple[tuple[int, NodeName, set[int]], ...]
    staying: BoolArray
    begun: int


class DrainSimulator:
    """Takes nodes out of the what-if cluster and places their pods on nodes that stay."""

    def __init__(
        self,
        builder: PlanBuilder,
        closed: Iterable[NodeName] = (),
        last: Sequence[NodeName] = (),
        begun: Iterable[Relocation] = (),
    ) -> None:
        """Build the simulator on the plan so far.

        Args:
            builder: The plan's what-if cluster.
            closed: Nodes that take no pods.
            last: The nodes to fill last, in this order.
            begun: Relocation of drains under way, whose pods are yet to come.
        """
        view = builder.view
        self._builder = builder
        self.staying: BoolArray = np.zeros(builder.sim.rows, dtype=np.bool_)
        self._rows_at_first = builder.sim.rows
        self.receiving: set[int] = set()
        self._out: list[tuple[int, NodeName, set[int]]] = []
        self._begun = list(begun)
        """Moves that were begun: kube-scheduler will distribute their pods as well."""
        gone = set(closed) | view.inventory.leaving | view.inventory.orphans.nodes
        gone |= view.inventory.departing | view.inventory.passing | view.unequipped
        self.staying[list(view.row_of.values())] = True
        self.staying[[view.row_of[n] for n in gone | view.draining if n in view.row_of]] = False
        self.tainted = [view.row_of[n] for n, node in view.nodes.items() if has_soft_taint(node)]
        """Rows with the soft taint: kube-scheduler uses them last."""
        self.foreign: SoftTaints = {}
        self.preferences: Preferences | None = None
        """PreferNoSchedule taints of others, and what pods prefer, for methods that ask for it."""
        self._order = self._filling_order([view.row_of[name] for name in last])
        self.initial_room = InitialRoom(builder.sim, self.staying)

    def _filling_order(self, last: list[int]) -> IntArray:
        """Return the rows in the order to fill them: the fullest first, those in `last` last."""
        late = np.zeros(self._builder.sim.rows, dtype=np.bool_)
        late[last] = True
        order = tightness(self._builder.sim)
        return np.concatenate([order[~late[order]], np.array(last, dtype=np.int64)])

    def checkpoint(self) -> Checkpoint:
        """Return the current state."""
        return Checkpoint(
            journal=self._builder.sim.fork(),
            out=tuple(self._out),
            staying=self.staying.copy(),
            begun=len(self._begun),
        )

    def undo(self, checkpoint: Checkpoint) -> None:
        """Return to the state: every node that was moved since is back with its pods."""
        builder = self._builder
        for row, name, _ in reversed(self._out[len(checkpoint.out) :]):
            builder.sim.set_schedulable(row, node_row(builder.view.nodes[name]))
        self.staying = checkpoint.staying.copy()
        self._out = list(checkpoint.out)
        del self._begun[checkpoint.begun :]
        self.receiving = {row for _, _, rows in self._out for row in rows}
        builder.sim.revert(checkpoint.journal)

    def staying_alone(self, node: Node) -> bool:
        """Return whether the node stays, and receives no pods of nodes that leave."""
        row = self._builder.view.row_of[node.name]
        return bool(self.staying[row]) and row not in self.receiving

    def add_row(self, spec: RowSpec) -> int:
        """Add the row of a new node; it takes pods only where it is named."""
        row = self._builder.sim.add_row(spec)
        self.staying = np.append(self.staying, np.zeros(1, dtype=np.bool_))
        return row

    def move(
        self, node: Node, groups: Sequence[Group], also: Sequence[int] = ()
    ) -> Relocation | None:
        """Place all pods on nodes that stay; return None and change nothing if one does not fit.

        The node counts as tainted meanwhile, for rules on how pods spread. Its pods are removed
        before and put back after that, so that counters see the same node.

        Args:
            node: The node that leaves.
            groups: Its pods that have to move.
            also: Further rows that may take them, after all others.
        """
        row = self._builder.view.row_of[node.name]
        if self._cannot_leave(row, groups, also):
            return None
        before = self.checkpoint()
        self.take_out(node, groups)
        groups, out = successors(self._builder.view, groups), self.checkpoint()
        taken = self.relocate(groups, also)
        if taken is None and (pinned_first := self._fewest_places_first(groups, also)) != groups:
            self.undo(out)
            groups, taken = pinned_first, self.relocate(pinned_first, also)
        if taken is None:
            self.undo(before)
            return None
        rows = {at for found in taken for at, _ in found}
        self._out[-1] = (row, node.name, rows)
        self.receiving |= rows
        return Relocation(node=node, groups=groups, taken=taken, rows=sorted(rows))

    def move_onto(
        self, node: Node, groups: Sequence[Group], rows: Sequence[int]
    ) -> Relocation | None:
        """Like `move`, but only onto these rows, in their order.

        Args:
            node: The node that is drained.
            groups: Its pods, in the order in which they are placed.
            rows: The rows that may take them; an idle node among them that does stays for good.
        """
        before, order = self.checkpoint(), self._order
        self.take_out(node, groups)
        groups = successors(self._builder.view, groups)
        gone, onto = self.staying, np.array(rows, dtype=np.int64)
        self.staying = np.isin(np.arange(self._builder.sim.rows), onto)
        self._order = onto
        taken = self.relocate(groups)
        self.staying, self._order = gone, order
        if taken is None:
            self.undo(before)
            return None
        found = {at for each in taken for at, _ in each}
        self._out[-1] = (*self._out[-1][:2], found)
        self.receiving |= found
        return Relocation(node=node, groups=groups, taken=taken, rows=sorted(found))

    @contextmanager
    def closed(self, names: Iterable[NodeName]) -> Iterator[None]:
        """Close nodes in the block: nodes of a set do not take each other's pods."""
        row_of = self._builder.view.row_of
        rows = [row for name in names if self.staying[row := row_of[name]]]
        self.staying[rows] = False
        yield
        out = {row for row, _, _ in self._out}
        self.staying[[row for row in rows if row not in out]] = True

    @contextmanager
    def expecting(
        self, last: Iterable[NodeName], tainted: Iterable[NodeName], untainted: Iterable[NodeName]
    ) -> Iterator[None]:
        """Fill `last` last, in this order, with soft taints on and off those, in the block."""
        before, row_of = (self._order, self.tainted), self._builder.view.row_of
        self._order = self._filling_order([row_of[name] for name in last])
        off = {row_of[name] for name in untainted}
        self.tainted = sorted({*self.tainted, *(row_of[name] for name in tainted)} - off)
        yield
        self._order, self.tainted = before

    def take_out(self, node: Node, groups: Sequence[Group]) -> None:
        """Take a node out with its pods, which then have no place."""
        sim, row = self._builder.sim, self._builder.view.row_of[node.name]
        for pod_class, pods in groups:
            sim.place(pod_class, np.array([row]), np.array([-len(pods)]))
        taints = (*node.taints, _DRAINING)
        sim.set_schedulable(row, node_row(node, taints=taints, closed=True))
        self.staying[row] = False
        self._out.append((row, node.name, set()))

    def place_what_fits(self, groups: Sequence[Group]) -> list[tuple[PodClass, int]]:
        """Place pods whose nodes were taken out; return those that fit nowhere, by class."""
        left: list[tuple[PodClass, int]] = []
        for pod_class, pods in successors(self._builder.view, groups):
            found = fill(self._builder.sim, pod_class, len(pods), *self._open_to(()), MOVES)
            missing = len(pods) - sum(amount for _, amount in found)
            if missing:
                left.append((pod_class, missing))
        return left

    def relocate(
        self, groups: Sequence[Group], also: Sequence[int] = ()
    ) -> list[list[tuple[int, int]]] | None:
        """Place pods that were removed from their nodes on nodes that stay.

        Args:
            groups: The pods, by class.
            also: Further rows that may take them, after all others.

        Returns:
            For each group the rows that take its pods, in order, and how many each. None if one pod
            fits nowhere: what was placed before it stays placed, for the caller to undo.
        """
        among, order = self._open_to(also)
        taken: list[list[tuple[int, int]]] = []
        for pod_class, pods in groups:
            found = fill(self._builder.sim, pod_class, len(pods), among, order, MOVES)
            if sum(amount for _, amount in found) < len(pods):
                return None
            taken.append(found)
        return taken

    def open(self, rows: Sequence[int]) -> None:
        """Let the rows of new nodes take pods like those of nodes that stay."""
        self.staying[list(rows)] = True

    def note(self, moves: Relocation) -> None:
        """Keep the moves for now; later moves have to fit with them."""
        self._begun.append(moves)

    def begin(self, moves: Relocation) -> None:
        """Commit the moves; later moves have to fit with them.

        An idle node among the destinations stays for good, with the room that is left on it.
        """
        self._begun.append(moves)
        self._stay(moves.rows)

    def _stay(self, rows: Sequence[int]) -> None:
        """Mark the idle nodes among these rows as staying."""
        self.staying[rows] = True
        self.initial_room.stays([row for row in rows if row < self._rows_at_first])

    def survives_spreading(self, moves: Relocation) -> bool:
        """Return whether the moved pods would all fit where kube-scheduler puts them.

        It puts each on the node with the most room left (LeastAllocated), not on the fullest that
        will do. It gets them in the order of their evictions, those of StatefulSets after the
        others, or by priority if several are pending. What fits packed tightly may then not fit.
        Pods of one class always fit: each node takes as many of them in any order. Pods of moves
        that were begun before are placed with them, up to some hundreds. Both states of the soft
        taint are tried on nodes that receive pods: they lose it in the plan that moves the pods.
        """
        every = [*latest(self._begun), moves]
        distinct = orders_of_arrival(every, self._builder.budgets)
        freed = [row for row in self.tainted if row not in moves.rows]
        either = [self.tainted] if freed == self.tainted else [self.tainted, freed]
        among = self._staying_and([r for m in every for r in m.rows])
        spread = partial(fit_spread, self._builder.sim, every, among=among, foreign=self.foreign)
        return all(spread(order, tainted=tainted) for tainted in either for order in distinct)

    def spread(self, moves: Relocation, also: Sequence[int]) -> None:
        """Move the pods that were just moved to where kube-scheduler puts them, as far as they fit.

        Undo it with a checkpoint from before.

        Args:
            moves: The last moves.
            also: Idle rows, which the plan would not use but kube-scheduler does.
        """
        self._stay([*moves.rows, *also])
        rows = self._spread(moves, self.staying)
        row, name, _ = self._out[-1]
        self._out[-1] = (row, name, set(rows))
        self.receiving = {row for _, _, rows in self._out for row in rows}

    def spread_rows(
        self, moves: Relocation, also: Sequence[int] = (), freed: Collection[int] = ()
    ) -> list[int]:
        """Return where kube-scheduler would put the pods that were just moved; nothing is changed.

        Args:
            moves: The last moves.
            also: Idle rows that kube-scheduler may use.
            freed: Rows whose soft taint is removed before the pods are evicted.
        """
        mark, tainted = self._builder.sim.fork(), self.tainted
        self.tainted = [row for row in tainted if row not in freed]
        among = self._staying_and([*moves.rows, *also])
        rows = self._spread(moves, among)
        self._builder.sim.revert(mark)
        self.tainted = tainted
        return rows

    def first_lands(
        self,
        node: Node,
        groups: Sequence[Group],
        rows: Sequence[int],
        also: Sequence[int],
        freed: Collection[int],
    ) -> int | None:
        """Return where kube-scheduler would put the first of a node's pods; nothing is changed.

        Args:
            node: The node that would be emptied.
            groups: Its pods.
            rows: The rows that may take them.
            also: Further rows that kube-scheduler may use.
            freed: Rows to treat as without their soft taint.

        Returns:
            The row; None where the pod fits on none of `rows`, wherever else it may fit.
        """
        come = successors(self._builder.view, groups)
        first, _ = min(come, key=lambda group: min(pod.key for pod in group[1]))
        before, tainted = self.checkpoint(), [row for row in self.tainted if row not in freed]
        self.take_out(node, groups)
        fits = (self._builder.sim.room(first, MOVES)[list(rows)] > 0).any()
        among = self._staying_and([*rows, *also])
        sim, liked = self._builder.sim, (self.foreign, self.preferences)
        lands = spread_over(sim, [], [first], among, tainted, *liked) if fits else []
        self.undo(before)
        return lands[0] if lands else None

    def _spread(self, moves: Relocation, among: BoolArray) -> list[int]:
        sim, liked = self._builder.sim, (self.foreign, self.preferences)
        classes = [c for _, c in moves.as_evicted(self._builder.budgets)]
        return spread_over(sim, [moves], classes, among, self.tainted, *liked)

    def fits(
        self, node: Node, groups: Sequence[Group], also: Sequence[int], *, spread: bool = False
    ) -> bool:
        """Return whether `move` would succeed, and survive `spread` if asked; change nothing."""
        checkpoint = self.checkpoint()
        relocation = self.move(node, groups, also)
        fits = relocation is not None and not (spread and not self.survives_spreading(relocation))
        self.undo(checkpoint)
        return fits

    def _open_to(self, also: Sequence[int]) -> tuple[BoolArray, IntArray]:
        """Return the rows that may take pods, and the order in which they do."""
        if not also:
            return self.staying, self._order
        more = np.array(also, dtype=np.int64)
        others = self._order[~np.isin(self._order, more)]
        return self._staying_and(also), np.concatenate([others, more])

    def _staying_and(self, also: Sequence[int]) -> BoolArray:
        """Return the rows that stay together with these, which may have been added since."""
        among = np.zeros(self._builder.sim.rows, dtype=np.bool_)
        among[: len(self.staying)] = self.staying
        among[list(also)] = True
        return among

    def _fewest_places_first(self, groups: list[Group], also: Sequence[int]) -> list[Group]:
        """Return the pods by priority, and then by how few rows their own rules admit."""
        sim, open_rows = self._builder.sim, self._staying_and(also)
        places = {c.static: int((sim.admitted(c) & open_rows).sum()) for c, _ in groups}
        return sorted(groups, key=lambda each: (-each[0].spec.priority, places[each[0].static]))

    def _cannot_leave(self, row: int, groups: Sequence[Group], also: Sequence[int]) -> bool:
        """Return whether resources alone exclude a place, as for most nodes."""
        as_at_first = not (also or self.staying[self._rows_at_first :].any())
        if as_at_first and self.initial_room.lacks(row, groups):
            return True
        return self._lacks_resources(row, groups, also)

    def _lacks_resources(self, row: int, groups: Sequence[Group], also: Sequence[int]) -> bool:
        """Return whether the nodes for these pods lack CPU or memory for all of them."""
        sim = self._builder.sim
        takes = np.zeros(sim.rows, dtype=np.bool_)
        for pod_class in {c.static: c for c, _ in groups}.values():
            takes |= sim.admitted(pod_class)
        open_rows = self._staying_and(also)
        open_rows[row] = False
        free = sim.free[open_rows & takes, :CPU_AND_MEMORY]
        left = np.maximum(free, 0).sum(axis=0)
        asked = sum(c.requests[:CPU_AND_MEMORY] * len(pods) for c, pods in groups)
        return bool((left < asked).any())
