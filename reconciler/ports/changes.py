"""The signal that ends the loop's pause; each of several sources notifies it by its name."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class HandledChanges:
    """One source whose changes a cycle has handled."""

    source: str
    seconds: float
    """From the first of these changes to the end of the cycle."""


class ChangeSignal(Protocol):
    """The interface for the sources: watches, a followed branch, an election, a queue.

    Thread-safe; every call returns at once.
    """

    def notify(
        self, source: str, *, demand: bool = False, calm: bool = False, namespace: str = ""
    ) -> None:
        """Report a change that a plan can depend on.

        Args:
            source: The source, one of a small fixed set, as it becomes a label of a metric.
            demand: Whether a pod began to wait for a node.
            calm: Whether the change needs no plan, such as a pod that ended: it may wait for
                others.
            namespace: Of the pod that changed: the change prolongs the batching window of this
                namespace only, see `Changes.gather`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """How long bursts of changes are collected before a plan; see `Cluster.gather`."""

    window_seconds: float
    longest_seconds: float
    calm_seconds: float
    unhurried: Container[str] = ()
    """Namespaces whose bursts are always collected for `longest_seconds`."""


class Changes(Protocol):
    """The interface for the loop."""

    def wait_for_change(self, timeout_seconds: float) -> bool:
        """Wait until something changed since the last observation; False after the timeout."""
        ...

    def demand_waits(self) -> bool:
        """Return whether a pod without a node was created since the last observation."""
        ...

    def gather(self, window: Window) -> float:
        """Wait until the current burst is complete, see ports.cluster; return the seconds."""
        ...

    def acknowledge(self) -> tuple[HandledChanges, ...]:
        """Report that the cycle of the last observation has ended without an error.

        Changes after that observation are left to the next cycle, and so are those of a failed
        cycle, which is not acknowledged.

        Returns:
            The sources that this cycle handled, by name.
        """
        ...
