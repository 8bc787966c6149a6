"""Encodes claims, volumes and what nodes attach as Kubernetes JSON that decodes to equal values.

As `encoding` does for everything else.
"""

from reconciler.model.selectors import NodeSelectorTerm
from reconciler.model.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from reconciler.records.kubernetes.encoding import (
    Json,
    encode_node_term,
    encode_selector,
    present,
)


def encode_claim(claim: PersistentVolumeClaim) -> Json:
    """Return a v1 PersistentVolumeClaim."""
    metadata = present(
        {
            "name": claim.name,
            "namespace": claim.namespace,
            "annotations": present({"volume.kubernetes.io/selected-node": claim.selected_node}),
            "ownerReferences": [{"kind": "Pod", "controller": True}] if claim.of_pod else None,
        }
    )
    spec = present(
        {
            "volumeName": claim.volume_name,
            "accessModes": list(claim.access_modes),
            "resources": {"requests": {"storage": str(claim.request_bytes)}},
            "volumeMode": "Block" if claim.block else None,
        }
    )
    if claim.storage_class is not None:  # an empty one means none, and not the default
        spec["storageClassName"] = claim.storage_class
    if claim.selector is not None:
        spec["selector"] = encode_selector(claim.selector)
    bound = bool(claim.volume_name) and claim.volume_bound
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
            "spec": spec, "status": {"phase": "Bound" if bound else "Pending"}}  # fmt: skip


def encode_volume(volume: PersistentVolume) -> Json:
    """Return a v1 PersistentVolume."""
    affinity, claim = volume.node_affinity, volume.claim
    spec = present(
        {
            "capacity": {"storage": str(volume.capacity_bytes)},
            "accessModes": list(volume.access_modes),
            "storageClassName": volume.storage_class,
            "volumeMode": "Block" if volume.block else None,
            "csi": present({"driver": volume.csi_driver, "volumeHandle": volume.volume_handle}),
            "claimRef": None if claim is None else {"namespace": claim[0], "name": claim[1]},
        }
    )
    if affinity is not None:
        terms = [encode_node_term(term) for term in affinity.terms]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    metadata = present({"name": volume.name, "labels": dict(volume.labels)})
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def encode_storage_class(storage_class: StorageClass) -> Json:
    """Return a storage.k8s.io/v1 StorageClass."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    metadata = {"name": storage_class.name, "annotations": default if storage_class.default else {}}
    waits = storage_class.wait_for_first_consumer
    topologies = [
        _topology(allowed_topology) for allowed_topology in storage_class.allowed_topologies
    ]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": present(metadata),
        "provisioner": storage_class.provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
        **present({"allowedTopologies": topologies}),
    }


def encode_csi_node(node: CsiNode) -> Json:
    """Return a storage.k8s.io/v1 CSINode."""
    drivers = [
        {"name": driver} | ({} if limit is None else {"allocatable": {"count": limit}})
        for driver, limit in node.limits.items()
    ]
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
            "metadata": {"name": node.name}, "spec": {"drivers": drivers}}  # fmt: skip


def _topology(term: NodeSelectorTerm) -> Json:
    lines = [{"key": line.key, "values": list(line.values)} for line in term.expressions]
    return {"matchLabelExpressions": lines}
