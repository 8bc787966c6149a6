"""In which namespace the Lease `fleet-reconciler` is kept."""

import os
from dataclasses import dataclass
from pathlib import Path

from reconciler.records.kubernetes import LEASE_NAMESPACE

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Every pod with a service account has it: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHome:
    """The one namespace whose Lease counts; Leases of the same name elsewhere are not looked at."""

    namespace: str
    may_be_made: bool = False
    """Whether the namespace is created when it does not exist. A name that somebody typed never
    is: a typing error would make a second Lease beside the one of the replicas."""


DEFAULT_HOME = LeaseHome(namespace=LEASE_NAMESPACE, may_be_made=True)
"""Outside of a cluster: where the manifest puts the install unless it is told otherwise."""


def lease_home(stated: str | None, kubeconfig: str | None = None) -> LeaseHome:
    """The namespace that is stated, else the pod's own, else the one that the manifest uses.

    Args:
        stated: What the config or a flag names.
        kubeconfig: The kubeconfig, or the context of one, that is named, if any.
    """
    if stated:
        return LeaseHome(namespace=stated)
    # Whoever names a kubeconfig means another cluster than that of the pod they may be in.
    named = kubeconfig or os.environ.get("KUBECONFIG")  # noqa: TID251 - kubectl's own variable
    own = None if named else own_namespace()
    if own is not None:
        return LeaseHome(namespace=own)
    return DEFAULT_HOME


def own_namespace(file: Path = SERVICE_ACCOUNT) -> str | None:
    """The namespace of the pod that this process runs in; None outside of a cluster."""
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
