"""Decodes claims, volumes and storage classes; in-tree EBS becomes its CSI driver."""

from collections.abc import Iterable
from itertools import islice
from typing import Literal

from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from reconciler.model.ids import NodeName
from reconciler.model.selectors import NodeSelectorTerm, Requirement
from reconciler.model.volumes import (
    EBS_DRIVER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from reconciler.records.kubernetes.fields import (
    ElasticBlockStoreWire,
    LabelSelectorWire,
    MetadataWire,
    NodeSelectorWire,
    OwnerReferenceWire,
    Quantity,
    Wire,
    amounts_of,
    label_selector_of,
    labels_of,
    node_selector_of,
    required_name,
)
from reconciler.records.kubernetes.limits import (
    ACCESS_MODES_MAX,
    NAME_MAX,
    label_selector_size,
    selector_beyond,
)

EBS_IN_TREE = "kubernetes.io/aws-ebs"
_BLOCK = "Block"
_BOUND = "Bound"
_LOST = "Lost"


class _ClaimAnnotationsWire(Struct, gc=False):
    selected_node: str | None = field(name="volume.kubernetes.io/selected-node", default=None)
    beta_class: str | None = field(name="volume.beta.kubernetes.io/storage-class", default=None)
    bind_completed: str | None = field(name="pv.kubernetes.io/bind-completed", default=None)


class _ClaimMetadataWire(MetadataWire):
    annotations: _ClaimAnnotationsWire | None = None
    owner_references: tuple[OwnerReferenceWire, ...] | None = None


class _ClaimResourcesWire(Wire):
    requests: dict[str, Quantity] | None = None


class _ClaimSpecWire(Wire):
    volume_name: str | None = None
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] | None = None
    resources: _ClaimResourcesWire | None = None
    selector: LabelSelectorWire | None = None
    volume_mode: str | None = None


class _ClaimStatusWire(Wire):
    phase: str | None = None


class _PersistentVolumeClaimWire(Wire):
    metadata: _ClaimMetadataWire
    spec: _ClaimSpecWire | None = None
    status: _ClaimStatusWire | None = None


class _CsiSourceWire(Wire):
    driver: str = ""
    volume_handle: str = ""


class _VolumeNodeAffinityWire(Wire):
    required: NodeSelectorWire | None = None


class _ClaimReferenceWire(Wire):
    namespace: str | None = None
    name: str | None = None


class _VolumeSpecWire(Wire):
    node_affinity: _VolumeNodeAffinityWire | None = None
    csi: _CsiSourceWire | None = None
    aws_elastic_block_store: ElasticBlockStoreWire | None = None
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] | None = None
    capacity: dict[str, Quantity] | None = None
    volume_mode: str | None = None
    claim_ref: _ClaimReferenceWire | None = None


class _PersistentVolumeWire(Wire):
    metadata: MetadataWire
    spec: _VolumeSpecWire


class _ClassAnnotationsWire(Struct, gc=False):
    default: str | None = field(name="storageclass.kubernetes.io/is-default-class", default=None)
    beta_default: str | None = field(
        name="storageclass.beta.kubernetes.io/is-default-class", default=None
    )


class _ClassMetadataWire(MetadataWire):
    annotations: _ClassAnnotationsWire | None = None


class _TopologyExpressionWire(Wire):
    key: str
    values: tuple[str, ...] = ()


class _TopologyTermWire(Wire):
    match_label_expressions: tuple[_TopologyExpressionWire, ...] | None = None


class _StorageClassWire(Wire):
    metadata: _ClassMetadataWire
    provisioner: str
    volume_binding_mode: Literal["Immediate", "WaitForFirstConsumer"] | None = None
    allowed_topologies: tuple[_TopologyTermWire, ...] | None = None


_CLAIM = Decoder(_PersistentVolumeClaimWire)
_VOLUME = Decoder(_PersistentVolumeWire)
_CLASS = Decoder(_StorageClassWire)


def decode_claim(raw: bytes | Raw) -> PersistentVolumeClaim:
    """Decode one claim; raise ValueError when it cannot be read.

    `storage_class` None means the cluster's default class, an empty one means none at all.
    """
    wire = _CLAIM.decode(raw)
    metadata, spec = wire.metadata, wire.spec or _ClaimSpecWire()
    annotations = metadata.annotations or _ClaimAnnotationsWire()
    selected = annotations.selected_node
    named = spec.storage_class_name
    storage_class = annotations.beta_class if named is None else named
    requests = spec.resources.requests if spec.resources else None
    too_complex = selector_beyond(label_selector_size(spec.selector), "selector")
    return PersistentVolumeClaim(
        namespace=metadata.namespace or "default",
        name=required_name(metadata.name),
        volume_name=(spec.volume_name or "")[:NAME_MAX],
        volume_bound=not spec.volume_name or _is_bound(wire.status, annotations),
        storage_class=None if storage_class is None else storage_class[:NAME_MAX],
        access_modes=_access_modes(spec.access_modes),
        selected_node=NodeName(selected[:NAME_MAX]) if selected else None,
        request_bytes=amounts_of(requests).get("storage", 0),
        selector=None if too_complex else label_selector_of(spec.selector),
        too_complex=too_complex,
        block=spec.volume_mode == _BLOCK,
        of_pod=any(o.controller and o.kind == "Pod" for o in metadata.owner_references or ()),
        deleting=metadata.deletion_timestamp is not None,
    )


def _is_bound(status: _ClaimStatusWire | None, annotations: _ClaimAnnotationsWire) -> bool:
    """Return whether a claim that names a volume is bound to it.

    kube-scheduler looks for the annotation, and refuses a claim in phase Lost in spite of it. An
    API server gives every claim a phase; a file written by hand may have neither, and a claim there
    that names a volume counts as bound. Source: kube-scheduler volumebinding, isPVCFullyBound and
    podHasPVCs.
    """
    phase = status.phase if status is not None else None
    if annotations.bind_completed is not None:
        return phase != _LOST
    return phase in {None, "", _BOUND}


def decode_volume(raw: bytes | Raw) -> PersistentVolume:
    """Decode one volume; raise ValueError when it cannot be read."""
    wire = _VOLUME.decode(raw)
    spec = wire.spec
    driver, handle = _csi_source(spec)
    reference = spec.claim_ref
    return PersistentVolume(
        name=required_name(wire.metadata.name),
        node_affinity=node_selector_of(spec.node_affinity.required) if spec.node_affinity else None,
        labels=labels_of(wire.metadata.labels),
        csi_driver=driver,
        volume_handle=handle,
        storage_class=spec.storage_class_name or "",
        access_modes=_access_modes(spec.access_modes),
        capacity_bytes=amounts_of(spec.capacity).get("storage", 0),
        block=spec.volume_mode == _BLOCK,
        claim=(reference.namespace or "default", reference.name)
        if reference and reference.name
        else None,
        deleting=wire.metadata.deletion_timestamp is not None,
    )


def decode_storage_class(raw: bytes | Raw) -> StorageClass:
    """Decode one storage class; raise ValueError when it cannot be read."""
    wire = _CLASS.decode(raw)
    annotations = wire.metadata.annotations or _ClassAnnotationsWire()
    return StorageClass(
        name=required_name(wire.metadata.name),
        provisioner=EBS_DRIVER if wire.provisioner == EBS_IN_TREE else wire.provisioner,
        wait_for_first_consumer=wire.volume_binding_mode == "WaitForFirstConsumer",
        allowed_topologies=tuple(map(_topology_term, wire.allowed_topologies or ())),
        default="true" in {annotations.default, annotations.beta_default},
    )


def _access_modes(modes: Iterable[str] | None) -> tuple[str, ...]:
    """Return each mode once, in order."""
    return tuple([mode[:NAME_MAX] for mode in islice(dict.fromkeys(modes or ()), ACCESS_MODES_MAX)])


def _csi_source(spec: _VolumeSpecWire) -> tuple[str, str]:
    if spec.csi is not None:
        return spec.csi.driver, spec.csi.volume_handle
    if spec.aws_elastic_block_store is not None:
        return EBS_DRIVER, spec.aws_elastic_block_store.handle
    return "", ""


def _topology_term(wire: _TopologyTermWire) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        expressions=tuple(
            Requirement(
                key=topology_expression_wire.key,
                operator="In",
                values=topology_expression_wire.values,
            )
            for topology_expression_wire in wire.match_label_expressions or ()
        )
    )
