"""The Cluster port over the in-memory world."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import orjson

from reconciler.adapters.memory.world import MemoryWorld
from reconciler.model.binding import IDENTITY_NAMESPACE
from reconciler.model.cluster import Namespace, Node, Pod, Taint
from reconciler.model.counted_pods import counts
from reconciler.model.errors import NotFound, Refused
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.snapshot import ClusterState
from reconciler.ports.changes import HandledChanges, Window
from reconciler.records.kubernetes import LEASE_NAME, ClusterObject, ObjectDecoder, assemble

Listed = TypeVar("Listed", Pod, Node)


class MemoryCluster:
    """The cluster of a world; waiting moves its clock.

    Args:
        world: The world.
    """

    def __init__(self, world: MemoryWorld) -> None:
        self._world = world
        self._objects = world.objects
        self._frozen: ClusterState | None = None
        self._closed = False
        self._changed_at: float | None = None
        """Time of the first change that an observation saw and no cycle has handled."""
        self._lease_read: tuple[dict[str, str], ClusterObject | None] | None = None

    def freeze(self, *, frozen: bool = True) -> None:
        """Freeze what observations show at the present state (a stale cache), or thaw it."""
        self._frozen = self._observe() if frozen else None

    def observe(self) -> ClusterState:
        """Return the current world."""
        with self._world.log.call("observe_cluster", "cluster"):
            if self._objects.changed and self._changed_at is None:
                self._changed_at = self._objects.changed_at
            self._objects.seen()
            return self._frozen or self._observe()

    def _observe(self) -> ClusterState:
        lease = self._lease()
        values: list[ClusterObject] = [
            *self._listed("pods", self._objects.pods),
            *self._listed("nodes", self._objects.nodes),
            *self._objects.budgets.now(),
            *self._objects.daemon_sets,
            *self._objects.volumes.listed(),
            Namespace(name=IDENTITY_NAMESPACE, uid=self._world.uid),
        ]
        if lease is not None:
            values.append(lease)
        return assemble(values, relists=self._world.relists)

    def _lease(self) -> ClusterObject | None:
        """Return the Lease's state, decoded again only after a write."""
        annotations = dict(self._world.lease_annotations)
        if self._lease_read is None or self._lease_read[0] != annotations:
            lease = {"metadata": {"name": LEASE_NAME, "annotations": annotations}}
            decoded = ObjectDecoder().decode("Lease", orjson.dumps(lease))
            self._lease_read = (annotations, decoded.value if decoded is not None else None)
        return self._lease_read[1]

    def _listed(self, kind: str, objects: Mapping[Any, Listed]) -> Iterable[Listed]:
        """Return a list, without the objects that the world leaves out."""
        every = self._world.left_out.get(kind)
        if every is None:
            return objects.values()
        return [objects[key] for number, key in enumerate(sorted(objects)) if number % every]

    def wait_for_change(self, timeout_seconds: float) -> bool:
        """Move the clock to the next change, or by the whole timeout."""
        clock, objects = self._world.clock, self._objects
        left = timeout_seconds
        while not (objects.pressing or self._closed):
            if objects.changed:
                calm = self._world.calm_seconds - (clock.monotonic_seconds() - objects.changed_at)
                if calm <= 0:
                    break
                left = min(left, calm)
            due = clock.next_due_seconds()
            if due is None or due > left:
                clock.advance(left)
                break
            clock.advance(due)
            left -= due
        return objects.changed and not self._closed

    def demand_waits(self) -> bool:
        """Return whether a pod without a node was created since the last observation."""
        return self._objects.demand_came

    def gather(self, window: Window) -> float:
        """Let the window pass: in virtual time a burst ends by itself."""
        clock, objects = self._world.clock, self._objects
        if not objects.changed or self._closed:
            return 0.0
        began = clock.monotonic_seconds()
        calm_until = objects.changed_at + window.calm_seconds
        while not objects.pressing and clock.monotonic_seconds() < calm_until:
            left = calm_until - clock.monotonic_seconds()
            due = clock.next_due_seconds()
            clock.advance(left if due is None else min(due, left))
        if objects.pressing or window.calm_seconds < window.window_seconds:
            clock.advance(window.window_seconds)
        return clock.monotonic_seconds() - began

    def acknowledge(self) -> tuple[HandledChanges, ...]:
        """Return the world as the one source, when it changed."""
        since, self._changed_at = self._changed_at, None
        if since is None:
            return ()
        now = self._world.clock.monotonic_seconds()
        return (HandledChanges(source="memory", seconds=now - since),)

    def taint_node(self, node: NodeName, taint: Taint) -> bool:
        """Put the taint on the node and keep all others."""
        with self._world.log.call("taint_node", node, taint.key):
            found = self._node(node)
            if taint in found.taints:
                return False
            others = [t for t in found.taints if (t.key, t.effect) != (taint.key, taint.effect)]
            self._objects.add_node(replace(found, taints=(*others, taint)))
        return True

    def untaint_node(self, node: NodeName, key: str) -> bool:
        """Remove every taint with this key from the node."""
        with self._world.log.call("untaint_node", node, key):
            found = self._node(node)
            kept = tuple(taint for taint in found.taints if taint.key != key)
            if kept == found.taints:
                return False
            self._objects.add_node(replace(found, taints=kept))
        return True

    def annotate_node(self, node: NodeName, annotations: Mapping[str, str | None]) -> None:
        """Set annotations; None removes one."""
        with self._world.log.call("annotate_node", node, ", ".join(sorted(annotations))):
            found = self._node(node)
            merged = _merged(found.annotations, annotations)
            self._objects.add_node(replace(found, annotations=FrozenMap(merged)))

    def evict_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """Evict exactly this pod if every budget allows it."""
        with self._world.log.call("evict_pod", str(pod), str(grace_seconds), (pod,)):
            found = self._objects.find(pod)
            if found is None or found.deleting:
                return False
            budgets = self._objects.budgets.of(found)
            if len(budgets) > 1:
                raise Refused(f"pod {pod}", "more than one PodDisruptionBudget covers it")
            if budgets and budgets[0].disruptions_allowed < 1 and not found.finished:
                raise Refused(f"pod {pod}", f"budget {budgets[0].name} does not allow it now")
            self._objects.stop_pod(found, grace_seconds)
        return True

    def delete_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """Delete exactly this pod, regardless of any budget."""
        with self._world.log.call("delete_pod", str(pod), str(grace_seconds), (pod,)):
            found = self._objects.find(pod)
            if found is None:
                return False
            self._objects.stop_pod(found, grace_seconds)
        return True

    def counted_pods_on(self, node: NodeName) -> tuple[PodKey, ...]:
        """Return the pods that count on a node, whatever observations show."""
        with self._world.log.call("counted_pods_on", node):
            return tuple(sorted(pod.key for pod in self._objects.pods_on(node) if counts(pod)))

    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes, whatever observations show."""
        with self._world.log.call("nodes", ""):
            return tuple(self._objects.nodes.values())

    def delete_node(self, node: NodeName, uid: str) -> bool:
        """Delete the Node object and its pods."""
        with self._world.log.call("delete_node", node):
            found = self._objects.nodes.get(node)
            if found is None or (uid and found.uid != uid):
                return False
            return self._objects.remove_node(node)

    def remember(self, annotations: Mapping[str, str | None]) -> None:
        """Save annotations on the Lease; this change does not end a wait."""
        with self._world.log.call("remember", LEASE_NAME, ", ".join(sorted(annotations))):
            self._world.lease_annotations = _merged(self._world.lease_annotations, annotations)

    def close(self) -> None:
        """End all waits."""
        self._closed = True

    def _node(self, name: NodeName) -> Node:
        node = self._objects.nodes.get(name)
        if node is None:
            raise NotFound(f"node {name}", "is gone")
        return node


def _merged(before: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged: dict[str, str | None] = {**before, **changes}
    return {key: value for key, value in merged.items() if value is not None}
