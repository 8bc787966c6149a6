"""What ends the pause of the loop: a signal that several sources notify, each by its name."""

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Handled:
    """One source whose changes a cycle has seen."""

    source: str
    seconds: float
    """From the first of these changes to the end of the cycle."""


class ChangeSignal(Protocol):
    """The side of the sources: watches, a followed branch, an election, a queue.

    Safe to call from any thread; every call returns at once.
    """

    def notify(
        self, source: str, *, demand: bool = False, calm: bool = False, namespace: str = ""
    ) -> int:
        """Say that something changed that a plan can depend on.

        Args:
            source: Who says so, of a small fixed set: it becomes a label of a metric.
            demand: Whether a pod began to wait for a node.
            calm: Whether the change asks for nothing, as a pod that ended: it may wait for others.
            namespace: Of the pod that changed: it prolongs the batching window of this namespace
                alone, see `Changes.gather`.

        Returns:
            The number of this call; numbers only grow.
        """
        ...

    def on_handled(self, source: str, hook: Callable[[int], None]) -> None:
        """Have `hook` called after cycles that dealt with what this source notified.

        A cycle has dealt with a call when it observed after it, planned, acted as the leader,
        and none of its actions failed. The hook gets the number of the last such call: a queue
        deletes the messages up to it, and receives the others again. It runs in the thread of
        the loop, must return soon and must not raise.
        """
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """How long bursts of changes gather before a plan (`Cluster.gather` says what each means)."""

    window_seconds: float
    longest_seconds: float
    calm_seconds: float
    unhurried: Container[str] = ()
    """Namespaces."""


class Changes(Protocol):
    """The side of the loop."""

    def wait_for_change(self, timeout_seconds: float) -> bool:
        """Block until something changed since the last observation; False after the time."""
        ...

    def demand_waits(self) -> bool:
        """Whether a pod without a node came since the last observation."""
        ...

    def gather(self, window: Window) -> float:
        """Let the burst that began come in, see ports.cluster; the window's length, seconds."""
        ...

    def acknowledge(self, *, complete: bool) -> tuple[Handled, ...]:
        """Report that the cycle of the last observation has ended without an error.

        Changes that came after that observation are left to the next cycle, and so are those of
        a cycle that failed: it is not acknowledged.

        Args:
            complete: Whether the plan was carried out and nothing of it failed; only then the
                sources are told.

        Returns:
            The sources that this cycle dealt with, by name.
        """
        ...
