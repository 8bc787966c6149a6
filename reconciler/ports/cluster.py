"""The Kubernetes cluster: one observation and the few verbs that the plan's actions need."""

from collections.abc import Mapping
from typing import Protocol

from reconciler.model.cluster import Node, Taint
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.snapshot import ClusterState
from reconciler.ports.changes import HandledChanges, Window


class Cluster(Protocol):
    """The API server.

    Every method may raise Throttled, Forbidden or Unavailable (nothing was changed) and, those
    that change something, OutcomeUnknown (the reply was lost; observe before deciding again).
    """

    def observe(self) -> ClusterState:
        """Return the current state of everything that planning reads.

        Raises:
            ObservationError: What is known is older than 60 s; nothing may be decided from it.
        """
        ...

    def wait_for_change(self, timeout_seconds: float) -> bool:
        """Wait until something that matters to planning changed since the last `observe`.

        Returns:
            True at a change, False after the timeout or when the program is to stop.
        """
        ...

    def demand_waits(self) -> bool:
        """Return at once whether a pod without a node was created since the last `observe`."""
        ...

    def gather(self, window: Window) -> float:
        """Collect a burst of changes, so that one plan covers them.

        Each namespace has a burst of its own, and the first one that is over ends the wait, so that
        no team's pods wait for those of another. A burst is over `window_seconds` after its first
        change since the last `observe`, later while its changes come less than 0.2 s apart or their
        watch was interrupted, and after `longest_seconds` in any case. Changes without a namespace,
        such as those of nodes, are one burst. Bursts of the `unhurried` namespaces always take
        `longest_seconds`.

        It returns at once when nothing changed or the program is to stop. As long as no change
        needs a plan (see `ChangeSignal.notify`) the burst is over `calm_seconds` after the first of
        them.

        Returns:
            How long the window was, in seconds, from the first change. Time before this call counts
            for at most the window's length, as the rest of it was spent on something else.
        """
        ...

    def acknowledge(self) -> tuple[HandledChanges, ...]:
        """See ports.changes."""
        ...

    def taint_node(self, node: NodeName, taint: Taint) -> bool:
        """Put the taint on the node and keep all others.

        Returns:
            False when it was there already.

        Raises:
            NotFound: The node is gone.
            Conflict: The node changed more often than the call is retried.
        """
        ...

    def untaint_node(self, node: NodeName, key: str) -> bool:
        """Remove every taint with this key from the node; False when there was none."""
        ...

    def annotate_node(self, node: NodeName, annotations: Mapping[str, str | None]) -> None:
        """Set annotations, all of them or none; None removes one.

        It never overwrites an unseen change: a write that was delayed until another replica took
        over is refused.

        Raises:
            NotFound: The node is gone.
            Conflict: The node changed more often than the call is retried.
        """
        ...

    def evict_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """Ask the Eviction API to end exactly this pod (by uid).

        Returns:
            False when the pod is gone or is already being deleted.

        Raises:
            Refused: A budget does not allow it now (429).
        """
        ...

    def delete_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """Delete exactly this pod (by uid), regardless of any budget; False when it is gone."""
        ...

    def counted_pods_on(self, node: NodeName) -> tuple[PodKey, ...]:
        """Return the pods that count on a node, read now and not from a cache.

        `model.counted` says which pods count, here as in plans.
        """
        ...

    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes, read now and not from a cache."""
        ...

    def delete_node(self, node: NodeName, uid: str) -> bool:
        """Delete exactly this Node object; False when it is gone, or a new one has its name.

        Without a uid any object of the name is deleted.
        """
        ...

    def remember(self, annotations: Mapping[str, str | None]) -> None:
        """Save annotations on the Lease `fleet-reconciler`, so that they survive a restart."""
        ...

    def close(self) -> None:
        """Stop watching and close connections."""
        ...
