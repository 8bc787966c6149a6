"""Detects moves into headroom that would have to be bought again.

The plan moves no pod into headroom, but kube-scheduler does not know about it: if the intended node
has a PreferNoSchedule taint too, kube-scheduler may choose the empty node that is headroom.
"""

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.simulator.drain_simulator import DrainSimulator
from reconciler.planner.disruption.simulator.relocation import Relocation
from reconciler.planner.disruption.simulator.spreading import (
    soft_taints_of_others,
    spread_over,
)
from reconciler.planner.headroom.lifted_headroom import LiftedHeadroom
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.fill import fill, tightness

TAKEN = Blocker(
    "headroom", "kube-scheduler would put its pods into room that is kept free, to be bought again"
)


class KeptHeadroom:
    """Follows what becomes of the plan's headroom when pods move.

    Args:
        builder: The plan, with all headroom in its simulation.
        simulator: The what-if cluster.
    """

    def __init__(self, builder: PlanBuilder, simulator: DrainSimulator) -> None:
        self._builder = builder
        self._simulator = simulator
        self._pieces = builder.headroom_places
        self._headroom = LiftedHeadroom(builder)
        self._foreign = soft_taints_of_others(builder.view) if self._pieces else {}

    def blocker(
        self,
        moves: Relocation,
        also: Sequence[int] = (),
        freed: Collection[int] = (),
    ) -> Blocker | None:
        """Return what speaks against moves that were just made; the simulation is left as it is.

        Args:
            moves: The moves.
            also: Idle rows on which kube-scheduler may put pods.
            freed: Rows whose soft taint is removed before the pods are evicted.
        """
        if not self._pieces:
            return None
        sim, simulator = self._builder.sim, self._simulator
        among = simulator.staying.copy()
        among[[*moves.rows, *also, *self._headroom.rows]] = True
        tainted = [row for row in simulator.tainted if row not in freed]
        classes = [pod_class for _, pod_class in moves.as_evicted(self._builder.budgets)]
        with self._headroom.lifted():
            liked = self._foreign, simulator.preferences
            spread_over(sim, [moves], classes, among, tainted, *liked)
            missing = self._missing(among)
        return TAKEN if missing else None

    def _missing(self, among: np.ndarray) -> bool:
        """Return whether some pod of the headroom finds no room any more."""
        sim, wanted = self._builder.sim, Counter[PodClass]()
        for pod_class, _, amount in self._pieces:
            wanted[pod_class] += amount
        order = tightness(sim)
        return any(
            sum(amount for _, amount in fill(sim, pod_class, count, among, order)) < count
            for pod_class, count in wanted.items()
        )
