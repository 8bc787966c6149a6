"""Whether the Kubernetes API that answers belongs to the cluster of our fleets."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from reconciler.model.ids import FleetId

IDENTITY_NAMESPACE = "kube-system"
"""The namespace that every cluster has and that cannot be deleted; its UID is the cluster's
identity. Source: Kubernetes community, "cluster id" (kube-state-metrics, OpenTelemetry's
k8s.cluster.uid)."""

Verdict = Literal["proven", "previously-proven", "pending", "unproven"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptProof:
    """An earlier proof, as our own Lease keeps it."""

    cluster_uid: str
    """UID of the namespace kube-system of the cluster in which it was found."""
    fleets: tuple[FleetId, ...]
    """Fleets whose instances were nodes of that cluster."""
    proven_at: datetime
    """When it was last found, to the hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What one snapshot says about cluster and fleets, and why."""

    verdict: Verdict = "pending"
    because: str = ""
    """A full sentence for people."""
    cluster_uid: str = ""
    """UID of the namespace kube-system; empty when it is not known."""
    kept: KeptProof | None = None
    """The proof to save on the Lease; None while nothing is proven."""
    may_remove: bool = False
    """Whether instances may be terminated, and nodes drained or deleted, at all."""

    @property
    def contradicted(self) -> bool:
        """Return whether cluster and fleets seem not to belong together: a person has to look."""
        return self.verdict == "unproven"
