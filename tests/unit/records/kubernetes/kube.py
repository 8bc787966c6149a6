"""Kubernetes JSON as the API server writes it, for the decoders' tests."""

import json
from typing import Any

from reconciler.model.cluster import Node, Pod
from reconciler.model.snapshot import ClusterState
from reconciler.records.kubernetes import decode_cluster, split_documents

Json = dict[str, Any]


def container(**resources: Any) -> Json:
    """A container with requests."""
    return {"name": "c", "image": "registry/app:1", "resources": {"requests": resources}}


def pod_json(name: str = "web-1", *, status: Json | None = None, **spec: Any) -> Json:
    """A pod; `metadata` in `spec` adds to its metadata."""
    metadata = {"name": name, "namespace": "web", "uid": f"uid-{name}", **spec.pop("metadata", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container(cpu="1")], **spec},
        "status": {"phase": "Pending", **(status or {})},
    }


def node_json(name: str = "ip-10-0-0-7", *, status: Json | None = None, **spec: Any) -> Json:
    """A Ready node; `metadata` in `spec` adds to its metadata."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T11:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **spec.pop("metadata", {})},
        "spec": {"providerID": "aws:///us-west-2a/i-0abc", **spec},
        "status": {
            "allocatable": {"cpu": "3920m", "memory": "28Gi", "pods": "58"},
            "conditions": [ready],
            **(status or {}),
        },
    }


def object_json(kind: str, name: str = "x", *, api: str = "v1", **fields: Any) -> Json:
    """Any object; `metadata` adds to its metadata."""
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def decode_body(body: bytes) -> ClusterState:
    """A file's content, decoded."""
    return decode_cluster(split_documents(body, "cluster.json"))


def decode(*objects: Any) -> ClusterState:
    """Objects in a v1 List, decoded."""
    return decode_body(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode())


def decode_pod(**spec: Any) -> Pod:
    """One pod, decoded, which must be readable."""
    state = decode(pod_json(**spec))
    assert state.ignored == ()
    return state.pods[0]


def decode_node(**spec: Any) -> Node:
    """One node, decoded, which must be readable."""
    state = decode(node_json(**spec))
    assert state.ignored == ()
    return state.nodes[0]
