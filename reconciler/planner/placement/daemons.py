"""Daemons' pods on imagined rows, which the rules of other pods count."""

from collections.abc import Callable, Iterator, Sequence

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
        self._at: dict[int, list[tuple[IntArray, IntArray]]] = {}
        self._journal: list[tuple[PodClass, IntArray]] = []

    def add(self, daemons: Sequence[Pod], first: int, copies: int) -> None:
        """Put a pod of each daemon on each of these rows, which are the last ones."""
        rows, ones = np.arange(first, first + copies), np.ones(copies, dtype=np.int64)
        for pod in daemons:
            pod_class = self._table.of_daemon(pod)
            self._at.setdefault(pod_class.number, []).append((rows, ones))
            self._journal.append((pod_class, rows))
            self._count(pod_class, rows, ones)

    def located(self, pod_class: PodClass) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield rows and amounts of a daemon's pods."""
        yield from self._at.get(pod_class.number, ())

    def revert(self, rows: int) -> None:
        """Take the pods on rows from `rows` on away, while these rows are there."""
        while self._journal and self._journal[-1][1][0] >= rows:
            pod_class, at = self._journal.pop()
            _, ones = self._at[pod_class.number].pop()
            self._count(pod_class, at, -ones)
