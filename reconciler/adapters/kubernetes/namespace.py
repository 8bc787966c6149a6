"""Determines the namespace of the Lease `fleet-reconciler`."""

import os
from dataclasses import dataclass
from pathlib import Path

from reconciler.records.kubernetes import LEASE_NAMESPACE

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Every pod with a service account has it: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHome:
    """The one namespace whose Lease counts; Leases of the same name elsewhere are ignored."""

    namespace: str
    may_be_made: bool = False
    """Whether the namespace is created when it does not exist. A name that somebody typed never is:
    a typing error would create a second Lease apart from the replicas' one."""


DEFAULT_HOME = LeaseHome(namespace=LEASE_NAMESPACE, may_be_made=True)
"""Outside of a cluster: the manifest's default namespace."""


def lease_home(stated: str | None, kubeconfig: str | None = None) -> LeaseHome:
    """Return the stated namespace, else the pod's own, else the manifest's default.

    Args:
        stated: The namespace in the config or a flag.
        kubeconfig: The kubeconfig or context that is named, if any.
    """
    if stated:
        return LeaseHome(namespace=stated)
    # A named kubeconfig means another cluster than that of the pod this process may run in.
    named = kubeconfig or os.environ.get("KUBECONFIG")  # noqa: TID251 - kubectl's own variable
    own = None if named else own_namespace()
    if own is not None:
        return LeaseHome(namespace=own)
    return DEFAULT_HOME


def own_namespace(file: Path = SERVICE_ACCOUNT) -> str | None:
    """Return the namespace of this process's pod; None outside of a cluster."""
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
