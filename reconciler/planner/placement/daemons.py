"""Daemons' pods on imagined rows, which the rules of other pods count."""

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
        """`count` tells the counters that there are pods of a class on rows."""
        self._table = table
        self._count = count
        self.noted: dict[int, list[tuple[IntArray, IntArray]]] = {}
        """Rows and amounts of the pods of each daemon, by class number."""
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
        """Take the pods on rows from `rows` on away, while these rows are there."""
        while self._journal and self._journal[-1][1][0] >= rows:
            pod_class, at = self._journal.pop()
            _, ones = self.noted[pod_class.number].pop()
            self._count(pod_class, at, -ones)
