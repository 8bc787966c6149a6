"""Where the program itself lives in the cluster."""

from pathlib import Path

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Every pod with a service account has it: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/"""
OUTSIDE = "kube-system"
"""Where the Lease is made when there is neither a pod nor such a Lease anywhere."""


def own_namespace(file: Path = SERVICE_ACCOUNT) -> str | None:
    """The pod's namespace, where it may keep its Lease; None outside of a cluster."""
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
