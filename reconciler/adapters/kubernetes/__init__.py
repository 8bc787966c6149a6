"""The Kubernetes API server as the Cluster port: `KubernetesCluster(connect(kubeconfig))`."""

from reconciler.adapters.kubernetes.cluster import KubernetesCluster
from reconciler.adapters.kubernetes.events import KubernetesEvents
from reconciler.adapters.kubernetes.leases import KubernetesLeases, LeaseHome, OtherLeases
from reconciler.adapters.kubernetes.namespace import own_namespace
from reconciler.adapters.kubernetes.transport import Transport, connect

__all__ = [
    "KubernetesCluster",
    "KubernetesEvents",
    "KubernetesLeases",
    "LeaseHome",
    "OtherLeases",
    "Transport",
    "connect",
    "own_namespace",
]
