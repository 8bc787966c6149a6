"""The watched kinds, and their paths in the API server."""

from typing import NamedTuple
from urllib.parse import quote

from reconciler.records.kubernetes import LEASE_NAME


class Kind(NamedTuple):
    """One watched kind."""

    name: str
    path: str
    field_selector: str = ""

    @property
    def api_version(self) -> str:
        """Return the apiVersion of its objects: `v1`, `apps/v1`."""
        root, group, *rest = self.path.strip("/").split("/")
        return group if root == "api" else f"{group}/{rest[0]}"


KINDS = (
    Kind("Pod", "/api/v1/pods"),
    Kind("Node", "/api/v1/nodes"),
    Kind("Namespace", "/api/v1/namespaces"),
    Kind("PersistentVolumeClaim", "/api/v1/persistentvolumeclaims"),
    Kind("PersistentVolume", "/api/v1/persistentvolumes"),
    Kind("DaemonSet", "/apis/apps/v1/daemonsets"),
    Kind("PodDisruptionBudget", "/apis/policy/v1/poddisruptionbudgets"),
    Kind("StorageClass", "/apis/storage.k8s.io/v1/storageclasses"),
    Kind("CSINode", "/apis/storage.k8s.io/v1/csinodes"),
)
"""What is watched in the whole cluster; of Leases only ours is."""
LEASES_PATH = "/apis/coordination.k8s.io/v1/leases"
OUR_LEASES = f"metadata.name={LEASE_NAME}"


def lease_kind(namespace: str) -> Kind:
    """Return our Lease only: every node renews its own, and anybody may create others."""
    return Kind("Lease", leases_path(namespace), OUR_LEASES)


def node_path(name: str) -> str:
    """Return the path of a node."""
    return f"/api/v1/nodes/{quote(name, safe='')}"


def pod_path(namespace: str, name: str) -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def events_path(namespace: str) -> str:
    """Return the path of a namespace's Events."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/events"


def leases_path(namespace: str) -> str:
    """Return the path of a namespace's Leases."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
