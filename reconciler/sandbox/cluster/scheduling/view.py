"""The cluster in the planner's model, updated with each change."""

from typing import TypeVar

from reconciler.model.cluster import Namespace, Node, Pod, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from reconciler.planner.placement.classes import ClassTable
from reconciler.planner.placement.simulation import RowSpec, Simulation
from reconciler.planner.placement.volumes import VolumeResolver
from reconciler.records.kubernetes import ObjectDecoder
from reconciler.sandbox.cluster.objects.resources import (
    CSI_NODES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Resource,
)
from reconciler.sandbox.cluster.objects.store import Change, Key, Store

_KINDS = (
    PODS,
    NODES,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    CSI_NODES,
)
_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
Value = TypeVar("Value")


class SchedulerView:
    """Decoded objects of the kinds that placement reads.

    Args:
        store: Where the present versions are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._decoder = ObjectDecoder()
        self._values: dict[Resource, dict[Key, object]] = {kind: {} for kind in _KINDS}
        self._stale: dict[tuple[Resource, Key], None] = {}

    def note(self, change: Change) -> bool:
        """Note that an object changed; return whether placement reads its kind at all."""
        entry = change.entry
        if entry.resource not in self._values:
            return False
        self._stale[entry.resource, entry.key] = None
        return True

    def refresh(self) -> None:
        """Decode what changed since the last time."""
        stale, self._stale = self._stale, {}
        for resource, key in stale:
            entry = self._store.find(resource, key)
            decoded = self._decoder.decode(resource.kind, entry.raw) if entry else None
            if decoded is None or decoded.value is None:
                self._values[resource].pop(key, None)
            else:
                self._values[resource][key] = decoded.value

    def decode_pod(self, raw: bytes) -> Pod | None:
        """Return a pod that is not in the store (yet), in the model."""
        decoded = self._decoder.decode(PODS.kind, raw)
        return decoded.value if decoded and isinstance(decoded.value, Pod) else None

    def _all(self, resource: Resource, kind: type[Value]) -> list[Value]:
        return [value for value in self._values[resource].values() if isinstance(value, kind)]

    @property
    def pods(self) -> list[Pod]:
        """Return every pod that has or needs a node."""
        return [pod for pod in self._all(PODS, Pod) if not pod.finished]

    @property
    def nodes(self) -> list[Node]:
        """Return every node, by name."""
        return sorted(self._all(NODES, Node), key=lambda node: node.name)

    def simulation(self, waiting: list[Pod]) -> Simulation:
        """Return the what-if cluster with all nodes as rows and all bound pods on them.

        Args:
            waiting: Pods that questions will be asked about.
        """
        bound = [pod for pod in self.pods if pod.node_name is not None]
        resolver = VolumeResolver(
            self._all(PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim),
            self._all(PERSISTENT_VOLUMES, PersistentVolume),
            self._all(STORAGE_CLASSES, StorageClass),
            bound,
        )
        everyone = [*bound, *waiting]
        namespaces = self._all(NAMESPACES, Namespace)
        table = ClassTable(everyone, namespaces, resolver)
        placed = [(table.of(pod, bound=True), pod) for pod in bound]
        for pod in waiting:
            table.of(pod, bound=False)
        sim = Simulation(table)
        limits = {csi.name: csi.limits for csi in self._all(CSI_NODES, CsiNode)}
        rows = {node.name: sim.add_row(_row(node, limits.get(node.name))) for node in self.nodes}
        sim.load(
            (pod_class, [rows[pod.node_name]])
            for pod_class, pod in placed
            if pod.node_name is not None and pod.node_name in rows
        )
        return sim


def _row(node: Node, limits: FrozenMap[str, int | None] | None) -> RowSpec:
    """Return a node in kube-scheduler's terms: unready and cordoned nodes have taints."""
    cordoned = (_CORDONED,) if node.unschedulable and _CORDONED not in node.taints else ()
    return RowSpec(
        name=node.name,
        variants=(node.labels,),
        taints=(*node.taints, *cordoned),
        schedulable=True,
        allocatable=node.allocatable,
        volume_limits=limits or {},
    )
