"""The Kubernetes API server as the Cluster port: `KubernetesCluster(connect(kubeconfig))`."""

from reconciler.adapters.kubernetes.cluster import KubernetesCluster
from reconciler.adapters.kubernetes.connecting import connect
from reconciler.adapters.kubernetes.events import KubernetesEvents
from reconciler.adapters.kubernetes.identity import election_identity
from reconciler.adapters.kubernetes.leases import KubernetesLeases, leases_elsewhere
from reconciler.adapters.kubernetes.namespace import LeaseHome, lease_home, own_namespace
from reconciler.adapters.kubernetes.transport import Transport

__all__ = [
    "KubernetesCluster",
    "KubernetesEvents",
    "KubernetesLeases",
    "LeaseHome",
    "Transport",
    "connect",
    "election_identity",
    "lease_home",
    "leases_elsewhere",
    "own_namespace",
]
