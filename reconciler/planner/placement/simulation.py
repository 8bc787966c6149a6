"""The rows of the what-if cluster: existing and imagined nodes, reservations and free room."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from reconciler.model.cluster import HostPort, Pod, Resources, Taint
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.selectors import LabelSelector
from reconciler.planner.placement.arrays import BoolArray, IntArray, grown
from reconciler.planner.placement.attachments import SharedAttachments
from reconciler.planner.placement.classes import ClassTable, PodClass
from reconciler.planner.placement.counters import CounterTable
from reconciler.planner.placement.daemons import ImaginedDaemons
from reconciler.planner.placement.eligible import EligibleKinds
from reconciler.planner.placement.filters import (
    inter_pod_affinity,
    resources,
    static,
    topology_spread,
)
from reconciler.planner.placement.kinds import KindTable
from reconciler.planner.placement.links import Links
from reconciler.planner.placement.located import LocatedPods
from reconciler.planner.placement.topology import Counter, Topology

NO_LIMITS: Mapping[str, int | None] = FrozenMap()
_SUM_MAX = 2**62
"""The most that the pods of one node count as: far beyond what any node offers."""


class RowSpec(NamedTuple):
    """What a row is made from. A tuple, as every plan makes one for each node."""

    name: str
    """The node's name; for an imagined node a name that no node has."""
    variants: tuple[Labels, ...]
    taints: tuple[Taint, ...]
    schedulable: bool
    allocatable: Resources
    volume_limits: Mapping[str, int | None] = NO_LIMITS
    taken_ports: tuple[HostPort, ...] = ()
    """Host ports that daemons will hold on an imagined node."""
    daemons: tuple[Pod, ...] = ()
    """Daemons' pods on an imagined node, as other pods see them; their requests are subtracted."""
    imagined: bool = False
    over_subscription: int = 0
    """In ten-thousandths, added to CPU and memory of each pod placed here; only for new
    capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of a question about room."""

    borrows: bool = True
    """Whether pods of higher priority may take the room of balloon pods."""
    zone_assumed: bool = False
    """Whether a node whose zone EC2 has yet to choose counts as being in the zone where it is
    needed; otherwise a pod must fit in every zone in which the node may start."""


DEMAND = Terms()
"""For pending pods."""
MOVES = Terms(borrows=False)
"""For pods that are moved: they must not displace balloon pods, which would be bought for again."""
ZONE_ASSUMED = Terms(zone_assumed=True)
"""For pods that wait for a zone that EC2 chooses."""


class Simulation:
    """The what-if cluster. Mutable, with `fork` and `revert`; never copied."""

    def __init__(self, table: ClassTable) -> None:
        self.table = table
        self.dimensions = table.dimensions
        self._shared = SharedAttachments(table.dimensions)
        self.kind_table = KindTable(table.node_label_keys, by_name=table.reads_names)
        self.topologies = {key: Topology(key) for key in sorted(table.topology_keys)}
        self._static_verdicts: dict[int, list[str]] = {}
        self._allowed: dict[int, BoolArray] = {}
        """By class, the verdicts for all kinds."""
        width = len(self.dimensions.names)
        self.names: list[str] = []
        self._free = np.zeros((0, width), dtype=np.int64)
        self._allocatable = np.zeros((0, width), dtype=np.int64)
        self._lendable: IntArray | None = None
        self._kinds = np.zeros(0, dtype=np.int64)
        self._over = np.zeros(0, dtype=np.int64)
        self._journal: list[tuple[PodClass, IntArray, IntArray]] = []
        self._daemons = ImaginedDaemons(table, self._count)
        self._located = LocatedPods(self._daemons)
        self._counter_table = CounterTable(
            table,
            self.topologies,
            EligibleKinds(table.statics, self.kind_table),
            lambda: self.kinds,
            self._located.of_all,
        )
        self._rows = 0
        self._allocatable_of: dict[int, tuple[RowSpec, IntArray]] = {}
        """By the `id` of the row's spec, which the values keep alive."""
        self._node_kind_of: dict[int, tuple[RowSpec, int]] = {}
        """Kind numbers by the `id` of the row's spec, which is looked up once per class."""
        self.version = 0
        """Changes whenever rows are added, removed or change kind."""

    # ---- rows -----------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Return how many rows there are."""
        return self._rows

    @property
    def free(self) -> IntArray:
        """Return (rows, dimensions) the free room; negative if overcommitted."""
        return self._free[: self._rows]

    @property
    def allocatable(self) -> IntArray:
        """Return (rows, dimensions) what each row offers while it is empty."""
        return self._allocatable[: self._rows]

    @property
    def kinds(self) -> IntArray:
        """Return the node kind of each row."""
        return self._kinds[: self._rows]

    def add_row(self, spec: RowSpec, copies: int = 1) -> int:
        """Append `copies` equal rows and return the number of the first.

        Imagined rows get names of their own.
        """
        first = self._rows
        names = [f"{spec.name}#{first + i}" if spec.imagined else spec.name for i in range(copies)]
        for topology in self.topologies.values():
            topology.add(
                [
                    topology.domain_of(spec.variants, name if spec.imagined else None)
                    for name in names
                ]
            )
        self._append(
            names,
            self.allocatable_of(spec),
            np.array(self.node_kind_of(spec), dtype=np.int64),
            np.array(spec.over_subscription, dtype=np.int64),
        )
        self._daemons.add(spec.daemons, first, copies)
        return first

    def add_rows(self, specs: Sequence[RowSpec]) -> None:
        """Append a row for each existing node."""
        labels = [spec.variants[0] for spec in specs]
        for topology in self.topologies.values():
            topology.add(topology.domains_of(labels))
        known: dict[tuple[object, ...], IntArray] = {}
        allocatable = np.zeros((len(specs), len(self.dimensions.names)), dtype=np.int64)
        for row, spec in enumerate(specs):
            key = (spec.allocatable, spec.volume_limits, spec.taken_ports)
            if key not in known:
                known[key] = self.allocatable_of(spec)
            allocatable[row] = known[key]
        self._append(
            [spec.name for spec in specs],
            allocatable,
            np.array([self._kind(spec) for spec in specs], dtype=np.int64),
            np.array([spec.over_subscription for spec in specs], dtype=np.int64),
        )

    def _append(
        self, names: Sequence[str], allocatable: IntArray, kinds: IntArray, over: IntArray
    ) -> None:
        """Append rows with these properties, each given once for all or once per row."""
        first, total = self._rows, self._rows + len(names)
        self._free = grown(self._free, total)
        self._allocatable = grown(self._allocatable, total)
        self._kinds = grown(self._kinds, total)
        self._over = grown(self._over, total)
        self._free[first:total] = allocatable
        self._allocatable[first:total] = allocatable
        self._kinds[first:total] = kinds
        self._over[first:total] = over
        self.names.extend(names)
        self._rows = total
        self.version += 1

    def allocatable_of(self, spec: RowSpec) -> IntArray:
        """Return (dimensions,) what a row made from this spec offers when it is empty.

        Read-only.
        """
        known = self._allocatable_of.get(id(spec))
        if known is None:
            vector = self.dimensions.of_node(spec.allocatable, spec.volume_limits, spec.taken_ports)
            known = self._allocatable_of[id(spec)] = (spec, vector)
        return known[1]

    def node_kind_of(self, spec: RowSpec) -> int:
        """Return the node kind of a row made from this spec."""
        known = self._node_kind_of.get(id(spec))
        if known is None:
            known = self._node_kind_of[id(spec)] = (spec, self._kind(spec))
        return known[1]

    def _kind(self, spec: RowSpec) -> int:
        return self.kind_table.number(
            spec.variants, spec.name, spec.taints, schedulable=spec.schedulable
        )

    def set_schedulable(self, row: int, spec: RowSpec) -> None:
        """Change the kind of a row: cordoned, uncordoned, or with other taints."""
        self._kinds[row] = self.node_kind_of(spec)
        self.version += 1

    def available(self) -> IntArray:
        """Return `free` plus the room of balloon pods, which higher priorities may take."""
        if self._lendable is None:
            return self.free
        self._lendable = grown(self._lendable, self._rows)
        return np.asarray(self.free + self._lendable[: self._rows])

    # ---- questions ------------------------------------------------------------------------

    def links(self, pod_class: PodClass) -> Links:
        """Return the counters of a class."""
        return self._counter_table.links(pod_class)

    def feeds(self, pod_class: PodClass) -> Sequence[Counter]:
        """Return the counters that count pods of a class, among those that any class obeys."""
        self.links(pod_class)
        return self._counter_table.feeds(pod_class)

    def matching(self, namespaces: frozenset[str], selector: LabelSelector | None) -> IntArray:
        """Return the numbers of the classes of these namespaces that the selector matches."""
        return self._counter_table.members((namespaces, selector))

    def staying(self, namespaces: frozenset[str], selector: LabelSelector | None) -> IntArray:
        """Return those of `matching` whose pods are not being deleted."""
        return self._counter_table.staying((namespaces, selector))

    def located(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """Return rows and amounts of pods of these classes that run or are reserved.

        Rows may repeat.
        """
        return self._located.of_all(numbers)

    def refusal(self, pod_class: PodClass, kind: int) -> str:
        """Return the code with which static filters refuse the class on a kind.

        Empty if none does.
        """
        return self.refusals(pod_class)[kind]

    def refusals(self, pod_class: PodClass) -> Sequence[str]:
        """Return `refusal` for every node kind, by number."""
        verdicts = self._static_verdicts.setdefault(pod_class.static, [])
        if len(verdicts) < len(self.kind_table.kinds):
            constraints = self.table.statics[pod_class.static]
            verdicts += static.verdicts(constraints, self.kind_table, len(verdicts))
        return verdicts

    def admitted(self, pod_class: PodClass, kinds: IntArray | None = None) -> BoolArray:
        """Return the rows that the static filters allow.

        `kinds` are the rows' kinds at another time.
        """
        if not self._rows:
            return np.zeros(0, dtype=np.bool_)
        verdicts = self.refusals(pod_class)
        allowed = self._allowed.get(pod_class.static)
        if allowed is None or len(allowed) < len(verdicts):
            allowed = np.array([not code for code in verdicts], dtype=np.bool_)
            self._allowed[pod_class.static] = allowed
        return np.asarray(allowed[self.kinds if kinds is None else kinds])

    def resource_room(self, pod_class: PodClass, terms: Terms = DEMAND) -> IntArray:
        """Return how many pods of the class the resource columns of each row still hold."""
        borrows = terms.borrows and pod_class.spec.priority >= 0 and pod_class.spec.preempts
        free = self.available() if borrows else self.free
        room = resources.room(
            free, self.allocatable, self._over[: self._rows], pod_class.requests, pod_class.columns
        )
        return self._shared.limited(pod_class, free, room)

    def room(self, pod_class: PodClass, terms: Terms = DEMAND) -> IntArray:
        """Return how many more pods of the class each row could take if only that row were filled.

        Rows of a topology domain share its room: fill such domains one pod at a time.
        """
        room = self.room_of_its_own(pod_class, terms)
        links = self.links(pod_class)
        if links.plain:
            return room
        return self.counter_room(links, room)

    def room_of_its_own(self, pod_class: PodClass, terms: Terms = DEMAND) -> IntArray:
        """Return `room` by static filters and resources, without the rules between pods."""
        admitted = self.admitted(pod_class)
        if not np.count_nonzero(admitted):
            return np.zeros(self._rows, dtype=np.int64)
        return np.where(admitted, self.resource_room(pod_class, terms), 0)

    def counter_room(self, links: Links, room: IntArray) -> IntArray:
        """Return `room` limited by affinity, anti-affinity and spread."""
        room = inter_pod_affinity.anti_affinity_room(links, room)
        room = inter_pod_affinity.affinity_room(links, room)
        return topology_spread.room(links, room, self.kinds, self.topologies, self.version)

    # ---- reservations ---------------------------------------------------------------------

    def place(self, pod_class: PodClass, rows: IntArray, amounts: IntArray) -> None:
        """Reserve `amounts` pods of the class on `rows` (each row once).

        Negative amounts release them.
        """
        self._apply(pod_class, rows, amounts)
        self._journal.append((pod_class, rows, amounts))
        self._located.place(pod_class.number, (rows, amounts))

    def _apply(self, pod_class: PodClass, rows: IntArray, amounts: IntArray) -> None:
        taken = pod_class.requests
        over = self._over[rows]
        if np.count_nonzero(over):
            taken = resources.charged(taken, self.allocatable[rows], over)
        if len(rows) == 1 and taken.ndim == 1:
            # The usual case: without an array of rows it takes less than half the time.
            self._free[rows[0]] -= taken * amounts[0]
        else:
            self._free[rows] -= taken * amounts[:, None]
        if pod_class.volumes.shared:
            self._shared.take(pod_class.volumes.shared, self.free, rows, amounts)
        self._count(pod_class, rows, amounts)

    def _count(self, pod_class: PodClass, rows: IntArray, amounts: IntArray) -> None:
        """Update the counters that count pods of the class."""
        self._counter_table.count(pod_class, rows, amounts)

    def load(self, pods: Iterable[tuple[PodClass, Sequence[int]]]) -> None:
        """Put running pods on the rows of their nodes; `revert` does not undo it.

        A class may occur more than once, and so may a row. On existing nodes nothing is inflated.
        """
        loads = [(pod_class, at) for pod_class, at in pods if at]
        if not loads:
            return
        self._free -= self._summed(loads)
        for pod_class, rows in loads:
            at = np.array(rows), np.ones(len(rows), dtype=np.int64)
            self._located.load(pod_class.number, at)
            self._count(pod_class, *at)
        for pod_class, rows in loads:
            if pod_class.volumes.shared:
                distinct, amounts = np.unique(rows, return_counts=True)
                self._shared.take(pod_class.volumes.shared, self.free, distinct, amounts)
        lent = [(pod_class, rows) for pod_class, rows in loads if pod_class.spec.priority < 0]
        if lent:
            self._lendable = self._summed(lent, most=_SUM_MAX // 2)

    def _summed(
        self, loads: Sequence[tuple[PodClass, Sequence[int]]], most: int = _SUM_MAX
    ) -> IntArray:
        """Return the sum per row of what pods ask for, with at most `most` of each."""
        rows = np.fromiter(chain.from_iterable(rows for _, rows in loads), dtype=np.int64)
        number = np.repeat(np.arange(len(loads)), [len(rows) for _, rows in loads])
        requests = np.array([pod_class.requests for pod_class, _ in loads], dtype=np.int64)
        total = np.zeros_like(self._free)
        for column in np.flatnonzero(np.any(requests, axis=0)).tolist():
            amounts = requests[number, column]
            np.add.at(total[:, column], rows, amounts)
            if len(rows) * int(amounts.max()) > most:
                # Whole numbers of 64 bits may have overflowed; floating point shows where.
                near = np.bincount(rows, weights=amounts, minlength=len(total))
                total[near > most, column] = most
        return total

    def fork(self) -> tuple[int, int]:
        """Return a mark to `revert` to."""
        return len(self._journal), self._rows

    def revert(self, mark: tuple[int, int]) -> None:
        """Undo every reservation and every row since the mark."""
        length, rows = mark
        while len(self._journal) > length:
            pod_class, at, amounts = self._journal.pop()
            self._located.take_back(pod_class.number)
            self._apply(pod_class, at, -amounts)
        self._daemons.revert(rows)
        if rows < self._rows:
            self._rows = rows
            self.version += 1
            del self.names[rows:]
            for topology in self.topologies.values():
                topology.truncate(rows)
