"""The command lines of the control plane's components."""

from pathlib import Path

_ETCD_BYTES_MAX = 8 << 30
_SILENCE_SECONDS_MIN = 50
"""kube-controller-manager's own grace before a silent node counts as lost."""


def etcd_flags(data: Path, url: str, peer: str) -> list[str]:
    """Return etcd's flags, with its data in a directory, at two addresses."""
    return [
        "--name=e2e",
        f"--data-dir={data}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=e2e={peer}",
        "--unsafe-no-fsync",  # this data is not needed after a crash
        f"--quota-backend-bytes={_ETCD_BYTES_MAX}",
        "--log-level=warn",
    ]


def api_server_flags(keys: Path, etcd: str, port: int) -> list[str]:
    """Return the API server's flags, with RBAC on.

    Args:
        keys: Directory with the certificate authority, its own certificate and the signing keys.
        etcd: Where etcd listens.
        port: Where to listen, on loopback.
    """
    return [
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # a loopback address cannot be an endpoint
        f"--client-ca-file={keys}/ca.crt",
        f"--tls-cert-file={keys}/apiserver.crt",
        f"--tls-private-key-file={keys}/apiserver.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={keys}/sa.pub",
        f"--service-account-signing-key-file={keys}/sa.key",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        "--profiling=false",
        "--max-requests-inflight=1000",
        "--max-mutating-requests-inflight=500",
    ]


def controller_flags(keys: Path, kubeconfig: Path, lease_seconds: int) -> list[str]:
    """Return the controller manager's flags; a node is lost some seconds after its lease ends."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--secure-port=0",
        "--leader-elect=false",
        f"--service-account-private-key-file={keys}/sa.key",
        f"--root-ca-file={keys}/ca.crt",
        "--use-service-account-credentials=true",
        f"--cluster-signing-cert-file={keys}/ca.crt",
        f"--cluster-signing-key-file={keys}/ca.key",
        f"--node-monitor-grace-period={max(_SILENCE_SECONDS_MIN, lease_seconds + 10)}s",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def kwok_flags(kubeconfig: Path, configuration: Path, lease_seconds: int) -> list[str]:
    """Return KWOK's flags, as the kubelet of every node."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--config={configuration}",
        "--cidr=10.244.0.0/16",
        "--manage-all-nodes=true",
        f"--node-lease-duration-seconds={lease_seconds}",
    ]
