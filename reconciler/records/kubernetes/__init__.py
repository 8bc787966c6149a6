"""Decodes Kubernetes JSON into the model: `decode_cluster(split_documents(body, where))`."""

from reconciler.records.kubernetes.documents import Page, RawObject, decode_page, split_documents
from reconciler.records.kubernetes.fields import API_GROUPS
from reconciler.records.kubernetes.objects import (
    ClusterObject,
    Decoded,
    Identity,
    ObjectDecoder,
)
from reconciler.records.kubernetes.saved_state import (
    LEASE_NAME,
    LEASE_NAMESPACE,
    SavedState,
    encode_fleet_state,
    encode_proof,
)
from reconciler.records.kubernetes.state import (
    assemble,
    decode_cluster,
    pod_order,
)

__all__ = [
    "API_GROUPS",
    "LEASE_NAME",
    "LEASE_NAMESPACE",
    "ClusterObject",
    "Decoded",
    "Identity",
    "ObjectDecoder",
    "Page",
    "RawObject",
    "SavedState",
    "assemble",
    "decode_cluster",
    "decode_page",
    "encode_fleet_state",
    "encode_proof",
    "pod_order",
    "split_documents",
]
