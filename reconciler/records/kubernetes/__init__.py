"""Kubernetes JSON into the model: `decode_cluster(split_documents(body, where))`."""

from reconciler.records.kubernetes.documents import Page, RawObject, decode_page, split_documents
from reconciler.records.kubernetes.fields import API_GROUPS
from reconciler.records.kubernetes.memory import LEASE_NAME, Memory, encode_fleet_state
from reconciler.records.kubernetes.objects import (
    ClusterObject,
    Decoded,
    Identity,
    ObjectDecoder,
)
from reconciler.records.kubernetes.state import (
    assemble,
    decode_cluster,
    merge_memories,
    ours_first,
    pod_order,
)

__all__ = [
    "API_GROUPS",
    "LEASE_NAME",
    "ClusterObject",
    "Decoded",
    "Identity",
    "Memory",
    "ObjectDecoder",
    "Page",
    "RawObject",
    "assemble",
    "decode_cluster",
    "decode_page",
    "encode_fleet_state",
    "merge_memories",
    "ours_first",
    "pod_order",
    "split_documents",
]
