"""Where an evicted pod would be placed, by kube-scheduler's filters and scores."""

from collections.abc import Collection

import numpy as np

from reconciler.model.ids import NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.descheduler.facts import Proposal
from reconciler.planner.disruption.simulator.lifted_headroom import LiftedHeadroom
from reconciler.planner.placement.arrays import BoolArray, FloatArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters.resources import CPU_AND_MEMORY
from reconciler.planner.placement.preferences import Preferences
from reconciler.planner.placement.simulation import MOVES

_FULL = 100.0
"""The highest score that one plugin of kube-scheduler gives."""


class Places:
    """Asks the what-if cluster for a place for one pod after another.

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

    def take(self, proposal: Proposal, destinations: BoolArray) -> NodeName | Blocker:
        """Reserve room for the pod on the node where it is expected, other than its own.

        Args:
            proposal: The pod, and which nodes would be better for it.
            destinations: Rows of nodes that the profile allows.
        """
        builder, pod = self._builder, proposal.pod
        assert pod.node_name is not None
        sim, own = builder.sim, builder.view.row_of[pod.node_name]
        pod_class = builder.view.table.of(pod, bound=True)
        mark = sim.fork()
        sim.place(pod_class, np.array([own]), np.array([-1]))
        takes = self._takes(pod_class)
        allowed = takes & self._open & destinations
        if proposal.better is not None:
            allowed &= proposal.better
        allowed[own] = False
        found = self._chosen(proposal, pod_class, takes, allowed)
        if isinstance(found, Blocker):
            sim.revert(mark)
            return found
        sim.place(pod_class, np.array([found]), np.array([1]))
        builder.reserve_moves([found])
        return builder.row_name(found)

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
            better = " that would be better" if proposal.better is not None else ""
            return Blocker("no-destination", f"it fits on no other node{better}")
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
        offers = np.maximum(sim.offers[: self._count, :CPU_AND_MEMORY], 1)
        free = sim.free[: self._count, :CPU_AND_MEMORY]
        share = (free - pod_class.requests[:CPU_AND_MEMORY]) / offers
        return np.asarray(_FULL * share.mean(axis=1) + self._preferences.scores(pod_class))
