"""The what-if cluster as kube-scheduler sees it: without headroom."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.placement.classes import PodClass


class LiftedHeadroom:
    """Removes the plan's headroom from its nodes to see the cluster as kube-scheduler does.

    Args:
        builder: The plan, with all headroom in its simulation.
    """

    def __init__(self, builder: PlanBuilder) -> None:
        self._sim = builder.sim
        classes: dict[int, PodClass] = {}
        pieces: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for pod_class, row, amount in builder.headroom_places:
            classes[pod_class.number] = pod_class
            pieces[pod_class.number][row] += amount
        self._pieces = [
            (classes[number], np.array(list(at)), np.array(list(at.values())))
            for number, at in pieces.items()
        ]
        self.rows = sorted({row for at in pieces.values() for row in at})
        """The rows on which pieces are placed."""

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Free the room of all pieces in the block; what is placed in it is removed at its end."""
        mark = self._sim.fork()
        for pod_class, rows, amounts in self._pieces:
            self._sim.place(pod_class, rows, -amounts)
        yield
        self._sim.revert(mark)
