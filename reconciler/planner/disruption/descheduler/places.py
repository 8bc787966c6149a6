"""Where an evicted pod would be placed, by kube-scheduler's filters and scores."""

from collections.abc import Collection

import numpy as np

from reconciler.model.ids import NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.descheduler.facts import Proposal
from reconciler.planner.disruption.descheduler.search_limit import (
    FAILED_FOR_ALL,
    TURN_SECONDS,
    TURNS,
    SearchLimit,
)
from reconciler.planner.headroom.lifted_headroom import LiftedHeadroom
from reconciler.planner.placement.arrays import BoolArray, FloatArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters.resources import CPU_AND_MEMORY
from reconciler.planner.placement.preferences import Preferences
from reconciler.planner.placement.simulation import MOVES

_OTHERS_FIRST = (
    f"no place was found for {FAILED_FOR_ALL} others of its policy; its turn comes within"
    f" {TURNS * TURN_SECONDS // 60} minutes"
)
_FULL = 100.0
"""The highest score that one plugin of kube-scheduler gives."""


class Places:
    """Asks the what-if cluster for a place for one pod after another.

    As long as no pod is placed, equal questions have equal answers: thousands of replicas that have
    to stay are asked about in each plan, so what was refused once is not searched for again.

    Args:
        builder: The plan in progress.
        closed: Nodes that are no destinations.
    """

    def __init__(self, builder: PlanBuilder, closed: Collection[NodeName]) -> None:
        self._builder = builder
        nodes = list(builder.view.nodes.values())
        self._count = len(nodes)
        self._open = np.array([node.name not in closed for node in nodes], dtype=np.bool_)
        self._preferences = Preferences(builder.sim, nodes)
        self._headroom = LiftedHeadroom(builder)
        self._refused: dict[tuple[int, int, bool, bytes], Blocker] = {}
        """By class, row, `leaves` and rows that would do: why there was no place."""
        self._takers: dict[int, BoolArray] = {}
        """By class: the nodes that have room for a pod more, with all pods where they are."""
        self.searches = SearchLimit(builder.view.at)
        """How many more searches may fail."""

    def take(self, proposal: Proposal, destinations: BoolArray) -> NodeName | Blocker:
        """Reserve room for the pod on the node where it is expected, other than its own.

        Args:
            proposal: The pod, and which nodes would be better for it.
            destinations: Rows of nodes that the profile allows.
        """
        builder, pod = self._builder, proposal.pod
        assert pod.node_name is not None
        own = builder.view.row_of[pod.node_name]
        pod_class = builder.view.table.of(pod, bound=True)
        would_do = self._open & destinations
        if proposal.better is not None:
            would_do &= proposal.better
        would_do[own] = False
        if not would_do.any():
            return _no_destination(proposal)
        key = pod_class.number, own, proposal.leaves, would_do.tobytes()
        if key in self._refused:
            return self._refused[key]
        takers = self._takers.get(pod_class.number)
        if takers is not None and not (takers & would_do).any():
            return _no_destination(proposal)
        if not self.searches.allows(pod):
            return Blocker("no-destination", _OTHERS_FIRST)
        found = self._searched(proposal, pod_class, own, would_do)
        if isinstance(found, Blocker):
            self.searches.count_failed()
            self._refused[key] = found
            return found
        self._refused.clear()
        self._takers.clear()
        builder.reserve_moves([found])
        return builder.row_name(found)

    def _searched(
        self, proposal: Proposal, pod_class: PodClass, own: int, would_do: BoolArray
    ) -> int | Blocker:
        """Return the row on which the pod was placed, or why it has to stay where it was."""
        sim = self._builder.sim
        if sim.links(pod_class).plain and not pod_class.volumes.shared:
            # Taking the pod off its node makes no room on other nodes, so one answer does for all
            # nodes. Rules between pods, or a volume that they share, may make some.
            takers = self._takers[pod_class.number] = self._takes(pod_class)
            if not (takers & would_do).any():
                return _no_destination(proposal)
        mark = sim.fork()
        sim.place(pod_class, np.array([own]), np.array([-1]))
        takes = self._takes(pod_class)
        found = self._chosen(proposal, pod_class, takes, takes & would_do)
        if isinstance(found, Blocker):
            sim.revert(mark)
        else:
            sim.place(pod_class, np.array([found]), np.array([1]))
        return found

    def _takes(self, pod_class: PodClass) -> BoolArray:
        """Return the nodes that have room for a pod of the class."""
        return np.asarray(self._builder.sim.room(pod_class, MOVES)[: self._count] > 0)

    def _chosen(
        self, proposal: Proposal, pod_class: PodClass, takes: BoolArray, allowed: BoolArray
    ) -> int | Blocker:
        """Return the row where the pod is expected, or why it has to stay.

        kube-scheduler does not know about headroom, so it may choose a node where only headroom is
        free.
        """
        if not allowed.any():
            return _no_destination(proposal)
        with self._headroom.lifted():
            # Thousands of pods are asked about. Without headroom the answer is the same as before.
            takes = self._takes(pod_class) if self._headroom.rows else takes
            scores = self._scores(pod_class)
        chosen = int(np.where(allowed, scores, -np.inf).argmax())
        favourite = int(np.where(takes, scores, -np.inf).argmax())
        if proposal.leaves and not allowed[favourite] and scores[favourite] >= scores[chosen]:
            name = self._builder.row_name(favourite)
            return Blocker("no-better-place", f"kube-scheduler would put it on {name}")
        return chosen

    def _scores(self, pod_class: PodClass) -> FloatArray:
        """Return each node's score by kube-scheduler: LeastAllocated plus preferences."""
        sim = self._builder.sim
        allocatable = np.maximum(sim.allocatable[: self._count, :CPU_AND_MEMORY], 1)
        free = sim.free[: self._count, :CPU_AND_MEMORY]
        share = (free - pod_class.requests[:CPU_AND_MEMORY]) / allocatable
        return np.asarray(_FULL * share.mean(axis=1) + self._preferences.scores(pod_class))


def _no_destination(proposal: Proposal) -> Blocker:
    better = " that would be better" if proposal.better is not None else ""
    return Blocker("no-destination", f"it fits on no other node{better}")
