"""Where the pods of a node go when it leaves."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Placement
from reconciler.planner.budgets import BudgetLedger
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.placement.classes import Group, PodClass
from reconciler.planner.view import ClusterView


@dataclass(slots=True, eq=False)
class Relocation:
    """Says where the pods of one node go."""

    node: Node
    groups: Sequence[Group]
    """The pods, by class."""
    taken: Sequence[Sequence[tuple[int, int]]]
    """For each group the rows that take its pods, in order, and how many each."""
    rows: list[int]
    """All of these rows, each once."""
    _evicted: list[tuple[Pod, PodClass]] | None = None

    def amounts(self) -> Iterator[tuple[PodClass, int, int]]:
        """Class, row and how many pods of the class go there."""
        for (pod_class, _), taken in zip(self.groups, self.taken, strict=True):
            for row, amount in taken:
                yield pod_class, row, amount

    def as_evicted(self, budgets: BudgetLedger) -> list[tuple[Pod, PodClass]]:
        """Return the pods and their classes in the order in which they are evicted.

        Args:
            budgets: They may let the pods go in rounds. What they allow when this is first asked
                for counts: the drain itself uses them up.
        """
        if self._evicted is None:
            class_of = {pod.key: pod_class for pod_class, pods in self.groups for pod in pods}
            pods = [pod for _, members in self.groups for pod in members]
            self._evicted = [(pod, class_of[pod.key]) for pod in budgets.in_rounds(pods)]
        return self._evicted


def placements_of(builder: PlanBuilder, moves: Relocation) -> list[Placement]:
    """Return where each pod goes; asked for only when a move is made, most are simulated."""
    return [
        Placement(pod=pod.key, node=builder.row_name(row), moved_from=moves.node.name)
        for row, pods in _dealt(moves)
        for pod in pods
    ]


def arrivals_of(moves: Relocation) -> dict[int, list[Pod]]:
    """Return the pods that come to each row."""
    found: dict[int, list[Pod]] = {}
    for row, pods in _dealt(moves):
        found.setdefault(row, []).extend(pods)
    return found


def _dealt(moves: Relocation) -> Iterator[tuple[int, list[Pod]]]:
    """Yield rows and the pods of one class that come there, in order."""
    for (_, pods), taken in zip(moves.groups, moves.taken, strict=True):
        rest = iter(pods)
        for row, amount in taken:
            yield row, list(islice(rest, amount))


def grouped(view: ClusterView, pods: Iterable[Pod]) -> list[Group]:
    """Return the pods by class, the hardest to place first."""
    return sorted(view.table.grouped(pods), key=_hardest_first)


def successors(view: ClusterView, groups: Iterable[Group]) -> list[Group]:
    """Return the pods as other nodes receive them: none of them is stopping there.

    Rules on how pods spread do not count a pod that is stopping, and count its successor.
    """
    return [
        (view.table.of(pods[0], bound=False), pods) if pod_class.deleting else (pod_class, pods)
        for pod_class, pods in groups
    ]


def waits_for_its_end(pod: Pod) -> bool:
    """Return whether what replaces the pod comes only when it is gone, as a StatefulSet's does.

    A ReplicaSet makes another pod as soon as the deletion has begun.
    """
    return pod.owner is not None and pod.owner.kind == "StatefulSet"


def _hardest_first(group: Group) -> tuple[object, ...]:
    """By priority, then CPU and memory relative to each other, then name."""
    pod_class, pods = group
    return (-pod_class.spec.priority, -pod_class.size, pods[0].key)
