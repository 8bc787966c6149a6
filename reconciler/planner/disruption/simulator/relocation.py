"""Where the pods of a node go when it leaves."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Placement
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.placement.classes import Group, PodClass
from reconciler.planner.pod_disruption_budgets import BudgetLedger
from reconciler.planner.view import ClusterView


@dataclass(slots=True, eq=False)
class Relocation:
    """Where the pods of one node go."""

    node: Node
    groups: Sequence[Group]
    """The pods, by class."""
    taken: Sequence[Sequence[tuple[int, int]]]
    """For each group the rows that take its pods, in order, with the number of pods."""
    rows: list[int]
    """All of these rows, each once."""
    _evicted: list[tuple[Pod, PodClass]] | None = None

    def amounts(self) -> Iterator[tuple[PodClass, int, int]]:
        """Yield class, row and the number of pods of the class that go there."""
        for (pod_class, _), taken in zip(self.groups, self.taken, strict=True):
            for row, amount in taken:
                yield pod_class, row, amount

    def as_evicted(self, budgets: BudgetLedger) -> list[tuple[Pod, PodClass]]:
        """Return the pods and their classes in the order in which they are evicted.

        Args:
            budgets: They may allow the pods in rounds. The answer is that of the first call: the
                drain itself uses the budgets up.
        """
        if self._evicted is None:
            class_of = {pod.key: pod_class for pod_class, pods in self.groups for pod in pods}
            pods = [pod for _, members in self.groups for pod in members]
            self._evicted = [(pod, class_of[pod.key]) for pod in budgets.in_rounds(pods)]
        return self._evicted


def placements_of(builder: PlanBuilder, moves: Relocation) -> list[Placement]:
    """Return where each pod goes.

    Called only for moves that are made, as most are only simulated.
    """
    return [
        Placement(pod=pod.key, node=builder.row_name(row), moved_from=moves.node.name)
        for row, pods in _pods_by_row(moves)
        for pod in pods
    ]


def arrivals_of(moves: Relocation) -> dict[int, list[Pod]]:
    """Return by row the pods that come to it."""
    found: dict[int, list[Pod]] = {}
    for row, pods in _pods_by_row(moves):
        found.setdefault(row, []).extend(pods)
    return found


def _pods_by_row(moves: Relocation) -> Iterator[tuple[int, list[Pod]]]:
    """Yield rows with the pods of one class that come there, in order."""
    for (_, pods), taken in zip(moves.groups, moves.taken, strict=True):
        rest = iter(pods)
        for row, amount in taken:
            yield row, list(islice(rest, amount))


def grouped(view: ClusterView, pods: Iterable[Pod]) -> list[Group]:
    """Return the pods by class, the hardest to place first."""
    return sorted(view.table.grouped(pods), key=_hardest_first)


def successors(view: ClusterView, groups: Iterable[Group]) -> list[Group]:
    """Return the pods as they will be on other nodes: none of them is being deleted.

    Rules on how pods spread count the successor of a pod but not a pod that is being deleted.
    """
    return [
        (view.table.of(pods[0], bound=False), pods) if pod_class.deleting else (pod_class, pods)
        for pod_class, pods in groups
    ]


def waits_for_its_end(pod: Pod) -> bool:
    """Return whether the pod's successor is created only after its end, as for a StatefulSet.

    A ReplicaSet creates another pod as soon as the deletion has begun.
    """
    return pod.owner is not None and pod.owner.kind == "StatefulSet"


def _hardest_first(group: Group) -> tuple[object, ...]:
    """Return the sort key: priority, then CPU and memory relative to each other, then name."""
    pod_class, pods = group
    return (-pod_class.spec.priority, -pod_class.size, pods[0].key)
