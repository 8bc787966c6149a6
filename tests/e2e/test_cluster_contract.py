"""The Cluster port's contract, as tests/contract has it, on a real API server."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from reconciler.adapters.kubernetes import KubernetesCluster, Transport, connect
from reconciler.records.kubernetes import LEASE_NAME
from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.contract import test_cluster as contract
from tests.contract.cluster_worlds import NAMESPACE, OverHttp
from tests.waiting import until

_POD = {
    "containers": [
        {"name": "c", "image": "registry/app:1", "resources": {"requests": {"cpu": "1"}}}
    ]
}
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE_NAME}"
_EVERYTHING = (
    f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets",
    f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
    f"/api/v1/namespaces/{NAMESPACE}/pods",
    "/api/v1/nodes",
)


class OnRealCluster(OverHttp):
    """The real adapter against a real API server, which all tests share."""

    def __init__(self, plane: ControlPlane) -> None:
        self.transport: Transport = connect(str(plane.kubeconfig))
        self.port = KubernetesCluster(connect(str(plane.kubeconfig)))

    def add_pod(self, name: str, labels: Mapping[str, str], *, mirror: bool = False) -> None:
        """See ClusterWorld; a real mirror pod is made by a kubelet, on its own node."""
        if not mirror:
            super().add_pod(name, labels)
            return
        node = self.port.observe().nodes[0].name
        metadata = {
            "name": name,
            "labels": dict(labels),
            "annotations": {"kubernetes.io/config.mirror": "hash"},
        }
        spec = {**_POD, "nodeName": node}
        self.create(f"/api/v1/namespaces/{NAMESPACE}/pods", {"metadata": metadata, "spec": spec})

    def close(self) -> None:
        """Leave the cluster as it was found: empty."""
        self.port.close()
        query = {"gracePeriodSeconds": 0}
        self.transport.request("DELETE", _LEASE)
        for path in _EVERYTHING:
            self.transport.expect("DELETE", path, query=query)
        until("the cluster is empty", lambda: not any(map(self._items, _EVERYTHING)))
        self.transport.close()

    def _items(self, path: str) -> bool:
        return bool(self.transport.expect("GET", path).json()["items"])


@pytest.fixture
def world(plane: ControlPlane) -> Iterator[OnRealCluster]:
    """A cluster with one node."""
    made = OnRealCluster(plane)
    try:
        made.add_node(contract.NODE)
        yield made
    finally:
        made.close()


def _suite() -> dict[str, Callable[..., None]]:
    """Whatever the contract says, today and later."""
    return {name: test for name, test in vars(contract).items() if name.startswith("test_")}


globals().update(_suite())
