"""The kinds that are watched, and where the API server has them."""

from typing import NamedTuple
from urllib.parse import quote

from reconciler.records.kubernetes import LEASE_NAME


class Kind(NamedTuple):
    """One watched kind."""

    name: str
    path: str
    field_selector: str = ""


# Every node renews a Lease of its own every 10 s: only ours is asked for.
LEASE = Kind("Lease", "/apis/coordination.k8s.io/v1/leases", f"metadata.name={LEASE_NAME}")
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
    LEASE,
)


def node_path(name: str) -> str:
    """Path of a node."""
    return f"/api/v1/nodes/{quote(name, safe='')}"


def pod_path(namespace: str, name: str) -> str:
    """Path of a pod."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def events_path(namespace: str) -> str:
    """Path of a namespace's Events."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/events"


def leases_path(namespace: str) -> str:
    """Path of a namespace's Leases."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
