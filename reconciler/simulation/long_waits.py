"""Counts workloads whose pods waited long, or found no node at all; bounded."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from reconciler.loops.workloads import Workload, workload_of
from reconciler.model.cluster import Pod

LONG_SECONDS: Final = 120.0
"""Longer than a node takes to launch and join."""
WORKLOADS_MAX: Final = 10_000
_OTHERS: Final = Workload(namespace="", kind="", name="others")


@dataclass(slots=True, kw_only=True)
class LongWait:
    """The pods of one workload that waited long, or were deleted before they had a node."""

    pods: int = 0
    longest_seconds: float = 0.0
    seconds: float = 0.0
    """The total of all of them."""
    without_a_node: int = 0
    """How many of them had no node when the simulation ended."""
    deleted: int = 0
    """How many of them were deleted before they had one."""


class LongWaits:
    """Counts the pods that waited for longer than `LONG_SECONDS`, by workload.

    Pods that were deleted before they had a node count however long they waited. Pods that wait at
    the end count only if it is long already: the others may be about to get their node.
    """

    def __init__(self) -> None:
        self._found: dict[Workload, LongWait] = {}

    def add(self, pod: Pod, seconds: float, *, deleted: bool = False) -> None:
        """Count a pod that found a node after this time, if that is long, or was deleted."""
        if deleted or seconds > LONG_SECONDS:
            _count(self._found, pod, seconds).deleted += deleted

    def worst(
        self, number: int, still: Iterable[tuple[Pod, float]]
    ) -> list[tuple[Workload, LongWait]]:
        """Return the workloads whose pods waited longest in total, the worst first.

        Args:
            number: How many at most.
            still: Pods that have no node now, and for how long.
        """
        long_waits = {workload: replace(wait) for workload, wait in self._found.items()}
        for pod, seconds in still:
            if seconds > LONG_SECONDS:
                _count(long_waits, pod, seconds).without_a_node += 1
        ordered = sorted(long_waits.items(), key=lambda item: (-item[1].seconds, item[0]))
        return ordered[:number]


def _count(found: dict[Workload, LongWait], pod: Pod, seconds: float) -> LongWait:
    """Count a pod with its workload and return the entry."""
    workload = workload_of(pod)
    if workload not in found and len(found) >= WORKLOADS_MAX:
        workload = _OTHERS
    wait = found.setdefault(workload, LongWait())
    wait.pods += 1
    wait.seconds += seconds
    wait.longest_seconds = max(wait.longest_seconds, seconds)
    return wait
