"""The Kubernetes cluster: one observation and the few verbs that the plan's actions need."""

from collections.abc import Mapping
from typing import Protocol

from reconciler.model.cluster import Node, Taint
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.snapshot import ClusterState
from reconciler.ports.changes import Handled, Window


class Cluster(Protocol):
    """The API server.

    Every method may raise Throttled, Forbidden or Unavailable (nothing was changed) and, those
    that change something, OutcomeUnknown (the reply was lost; observe before deciding again).
    """

    def observe(self) -> ClusterState:
        """The present state of everything that planning reads.

        Raises:
            ObservationError: What is known is older than 60 s; nothing may be decided from it.
        """
        ...

    def wait_for_change(self, timeout_seconds: float) -> bool:
        """Block until something that matters to planning changed since the last `observe`.

        Returns:
            True at a change, False when the time ran out or the program is asked to stop.
        """
        ...

    def demand_waits(self) -> bool:
        """Whether a pod without a node came since the last `observe`; returns at once."""
        ...

    def gather(self, window: Window) -> float:
        """Let a burst of changes come in before it is planned for as one.

        Each namespace has a burst of its own, and the first one that is over ends the wait: no
        team's pods wait for those of another. A burst is over `window_seconds` after its first
        change since the last `observe`, later while its changes keep coming less than 0.2 s apart
        or what tells of them was cut off, after `longest_seconds` in any case. Changes of no
        namespace, as those of nodes, are one burst. Bursts of the `unhurried` namespaces always
        take `longest_seconds`.

        Returns at once when nothing changed or the program is asked to stop. As long as no change
        asks for anything (see `ChangeSignal.notify`) it is `calm_seconds` after the first of them.

        Returns:
            How long the window was, in seconds: from the first change, but of the time before
            this call at most the window, as more of it was spent on something else.
        """
        ...

    def acknowledge(self, *, complete: bool) -> tuple[Handled, ...]:
        """See ports.changes."""
        ...

    def taint_node(self, node: NodeName, taint: Taint) -> bool:
        """Put the taint on the node, leaving all others.

        Returns:
            False when it was there already.

        Raises:
            NotFound: The node is gone.
            Conflict: The node changed under us more often than we retry.
        """
        ...

    def untaint_node(self, node: NodeName, key: str) -> bool:
        """Take every taint with this key off the node; False when there was none."""
        ...

    def annotate_node(self, node: NodeName, annotations: Mapping[str, str | None]) -> None:
        """Set annotations, all of them or none; None removes one.

        Never on top of a change that was not seen: a write that was held up while another one
        took over is refused.

        Raises:
            NotFound: The node is gone.
            Conflict: The node changed under us more often than we retry.
        """
        ...

    def evict_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """Ask the Eviction API to end this very pod (by uid).

        Returns:
            False when the pod is gone or is already being deleted.

        Raises:
            Refused: A budget does not allow it now (429).
        """
        ...

    def delete_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """Delete this very pod (by uid), past any budget; False when it is gone."""
        ...

    def counted_pods_on(self, node: NodeName) -> tuple[PodKey, ...]:
        """The live pods that count on a node, read now and not from a cache.

        Which pods count is what `model.counted` says, here as in plans.
        """
        ...

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, read now and not from a cache."""
        ...

    def delete_node(self, node: NodeName, uid: str) -> bool:
        """Delete this very Node object; False when it is gone, or another one by now.

        Without a uid it is whichever has the name.
        """
        ...

    def remember(self, annotations: Mapping[str, str | None]) -> None:
        """Keep annotations on the Lease `fleet-reconciler`, so that they survive a restart."""
        ...

    def close(self) -> None:
        """Stop watching and let go of connections."""
        ...
