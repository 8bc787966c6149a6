"""Daemons' pods on imagined rows, which count for the rules of other pods."""

from collections.abc import Callable, Sequence

import numpy as np

from reconciler.model.cluster import Pod
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.classes import ClassTable, PodClass


class ImaginedDaemons:
    """Which daemons' pods are on which imagined rows."""

    def __init__(
        self, table: ClassTable, count: Callable[[PodClass, IntArray, IntArray], None]
    ) -> None:
        """Start empty; `count` updates the counters for pods of a class on rows."""
        self._table = table
        self._count = count
        self.noted: dict[int, list[tuple[IntArray, IntArray]]] = {}
        """Rows and amounts of each daemon's pods, by class number."""
        self._journal: list[tuple[PodClass, IntArray]] = []

    def add(self, daemons: Sequence[Pod], first: int, copies: int) -> None:
        """Put a pod of each daemon on each of these rows, which are the last ones."""
        rows, ones = np.arange(first, first + copies), np.ones(copies, dtype=np.int64)
        for pod in daemons:
            pod_class = self._table.of_daemon(pod)
            self.noted.setdefault(pod_class.number, []).append((rows, ones))
            self._journal.append((pod_class, rows))
            self._count(pod_class, rows, ones)

    def revert(self, rows: int) -> None:
        """Remove the pods on rows from `rows` on, while these rows still exist."""
        while self._journal and self._journal[-1][1][0] >= rows:
            pod_class, at = self._journal.pop()
            _, ones = self.noted[pod_class.number].pop()
            self._count(pod_class, at, -ones)
