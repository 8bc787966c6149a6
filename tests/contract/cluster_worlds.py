"""Clusters that the Cluster port's contract is checked on: in memory, and over HTTP."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from reconciler.adapters.kubernetes import KubernetesCluster, Transport, connect
from reconciler.adapters.memory import BudgetShape, MemoryCluster, MemoryWorld
from reconciler.model.cluster import Node, Owner, Pod, PodSpec
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import InstanceId, NodeName, PodKey
from reconciler.model.selectors import LabelSelector
from reconciler.model.snapshot import ClusterState
from reconciler.ports.cluster import Cluster
from reconciler.sandbox.cluster.server import ClusterServer

NAMESPACE = "default"


class ClusterWorld(ABC):
    """What a test arranges behind the port."""

    port: Cluster
    turns: ClassVar[int] = 300
    """How often `until` looks; with 0.2 s each, virtual or real."""

    @abstractmethod
    def add_node(self, name: str, instance: str = "") -> None:
        """A Ready node of 4 CPUs, of an EC2 instance when one is named."""

    @abstractmethod
    def add_pod(self, name: str, labels: Mapping[str, str], *, mirror: bool = False) -> None:
        """A pod of 1 CPU, which will be bound to any node."""

    @abstractmethod
    def add_daemon(self, name: str) -> None:
        """A DaemonSet with one pod on each node."""

    @abstractmethod
    def add_budget(self, name: str, labels: Mapping[str, str], min_available: int) -> None:
        """A budget over pods with these labels."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    def until(self, holds: Callable[[ClusterState], bool]) -> ClusterState:
        """Observe at each change until something holds."""
        for _ in range(self.turns):
            state = self.port.observe()
            if holds(state):
                return state
            self.port.wait_for_change(0.2)
        raise AssertionError("it never came to that")

    def bound_pod(self, name: str = "web-1", labels: Mapping[str, str] | None = None) -> PodKey:
        """Add a pod and wait until it runs on a node."""
        self.add_pod(name, labels or {"app": "web"})
        state = self.until(lambda s: any(p.key.name == name and p.ready for p in s.pods))
        return next(pod.key for pod in state.pods if pod.key.name == name)


class InMemory(ClusterWorld):
    """The twin that simulations run on."""

    def __init__(self) -> None:
        self._world = MemoryWorld()
        self.port = MemoryCluster(self._world)

    def add_node(self, name: str, instance: str = "") -> None:
        """See ClusterWorld."""
        resources = FrozenMap({"cpu": 4000, "pods": 20})
        known = InstanceId(instance) if instance else None
        self._world.add_node(Node(name=NodeName(name), instance_id=known, allocatable=resources))

    def add_pod(self, name: str, labels: Mapping[str, str], *, mirror: bool = False) -> None:
        """See ClusterWorld."""
        self._world.add_pod(self._pod(name, labels, mirror=mirror))

    def _pod(
        self,
        name: str,
        labels: Mapping[str, str],
        *,
        mirror: bool = False,
        owner: Owner | None = None,
    ) -> Pod:
        return Pod(
            key=PodKey(namespace=NAMESPACE, name=name),
            spec=PodSpec(requests=FrozenMap({"cpu": 1000, "pods": 1})),
            labels=FrozenMap(labels),
            mirror=mirror,
            owner=owner,
        )

    def add_daemon(self, name: str) -> None:
        """See ClusterWorld."""
        for node in self._world.nodes():
            owner = Owner(kind="DaemonSet", name=name)
            self._world.add_pod(self._pod(f"{name}-{node.name}", {"app": name}, owner=owner))

    def add_budget(self, name: str, labels: Mapping[str, str], min_available: int) -> None:
        """See ClusterWorld."""
        selector = LabelSelector(match_labels=FrozenMap(labels))
        self._world.add_budget(
            BudgetShape(
                namespace=NAMESPACE, name=name, selector=selector, min_available=min_available
            )
        )

    def close(self) -> None:
        """See ClusterWorld."""
        self.port.close()


class OverHttp(ClusterWorld):
    """The real adapter against the sandbox's API server."""

    port: KubernetesCluster

    def __init__(self) -> None:
        self.server = ClusterServer().start()
        self.transport: Transport = connect(str(self.server.kubeconfig))
        self.port = KubernetesCluster(connect(str(self.server.kubeconfig)))

    def create(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object."""
        self.transport.expect("POST", path, body=dict(body))

    def add_node(self, name: str, instance: str = "") -> None:
        """See ClusterWorld."""
        spec = {"providerID": f"aws:///us-west-2a/{instance}"} if instance else {}
        resources = {"cpu": "4", "memory": "8Gi", "pods": "20"}
        status = {"allocatable": resources, "capacity": resources}
        self.create("/api/v1/nodes", {"metadata": {"name": name}, "spec": spec, "status": status})
        self.until(lambda s: any(n.name == name and n.ready and not n.taints for n in s.nodes))

    def add_pod(self, name: str, labels: Mapping[str, str], *, mirror: bool = False) -> None:
        """See ClusterWorld."""
        annotations = {"kubernetes.io/config.mirror": "hash"} if mirror else {}
        metadata = {"name": name, "labels": dict(labels), "annotations": annotations}
        self.create(
            f"/api/v1/namespaces/{NAMESPACE}/pods", {"metadata": metadata, "spec": _POD_SPEC}
        )

    def add_daemon(self, name: str) -> None:
        """See ClusterWorld."""
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": _POD_SPEC}
        self.create(
            f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets",
            {
                "metadata": {"name": name},
                "spec": {"selector": {"matchLabels": labels}, "template": template},
            },
        )

    def add_budget(self, name: str, labels: Mapping[str, str], min_available: int) -> None:
        """See ClusterWorld."""
        selector = {"matchLabels": dict(labels)}
        self.create(
            f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
            {
                "metadata": {"name": name},
                "spec": {"selector": selector, "minAvailable": min_available},
            },
        )
        self.until(
            lambda s: any(b.name == name and b.desired_healthy == min_available for b in s.budgets)
        )

    def close(self) -> None:
        """See ClusterWorld."""
        self.port.close()
        self.transport.close()
        self.server.stop()


_POD_SPEC = {
    "containers": [
        {"name": "c", "image": "registry/app:1", "resources": {"requests": {"cpu": "1"}}}
    ]
}

WORLDS: tuple[type[ClusterWorld], ...] = (InMemory, OverHttp)
