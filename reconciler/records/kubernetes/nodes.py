"""Decodes nodes and what CSI drivers can attach to them."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Raw, field
from msgspec.json import Decoder

from reconciler.model.cluster import Node, Taint
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.ids import NodeName, instance_id_of
from reconciler.model.volumes import CsiNode
from reconciler.records.kubernetes.fields import (
    MetadataWire,
    Quantity,
    Wire,
    labels_of,
    required_name,
    resources_of,
    utc,
)
from reconciler.records.kubernetes.pods import (
    KARPENTER_DO_NOT_DISRUPT,
    SAFE_TO_EVICT,
    SCALE_DOWN_DISABLED,
)

OUR_PREFIX = "fleet-reconciler.io/"
"""The prefix of all our annotations."""

_HONOURED = {SAFE_TO_EVICT, SCALE_DOWN_DISABLED, KARPENTER_DO_NOT_DISRUPT}


class _NodeMetadataWire(MetadataWire):
    annotations: dict[str, str] | None = None


class _TaintWire(Wire):
    key: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str | None = None


class _NodeSpecWire(Wire):
    provider_id: str | None = field(name="providerID", default=None)
    taints: tuple[_TaintWire, ...] | None = None
    unschedulable: bool | None = None


class _ConditionWire(Wire):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class _NodeStatusWire(Wire):
    allocatable: dict[str, Quantity] | None = None
    capacity: dict[str, Quantity] | None = None
    conditions: tuple[_ConditionWire, ...] | None = None


class _NodeWire(Wire):
    metadata: _NodeMetadataWire
    spec: _NodeSpecWire | None = None
    status: _NodeStatusWire | None = None


class _CsiAllocatableWire(Wire):
    count: Annotated[int, Meta(ge=0, lt=2**31)] | None = None


class _CsiDriverWire(Wire):
    name: str
    allocatable: _CsiAllocatableWire | None = None


class _CsiSpecWire(Wire):
    drivers: tuple[_CsiDriverWire, ...] | None = None


class _CsiNodeWire(Wire):
    metadata: MetadataWire
    spec: _CsiSpecWire | None = None


_NODE = Decoder(_NodeWire)
_CSI_NODE = Decoder(_CsiNodeWire)


def decode_node(raw: bytes | Raw) -> Node:
    """Decode one node; raise ValueError when it cannot be read.

    A node without status or allocatable counts as unreadable: what it offers, whether it is alive
    and whether anything keeps it is unknown. A kubelet writes both when it registers.
    """
    wire = _NODE.decode(raw)
    metadata, spec, status = wire.metadata, wire.spec or _NodeSpecWire(), wire.status
    if status is None or status.allocatable is None:
        raise ValueError("status.allocatable is missing")
    ready = _ready_condition(status)
    allocatable = resources_of(status.allocatable)
    provider_id = spec.provider_id or ""
    return Node(
        name=NodeName(required_name(metadata.name)),
        uid=metadata.uid or "",
        provider_id=provider_id,
        instance_id=instance_id_of(provider_id),
        labels=labels_of(metadata.labels),
        annotations=_kept(metadata.annotations or {}),
        taints=tuple(
            Taint(key=taint.key, value=taint.value or "", effect=taint.effect)
            for taint in spec.taints or ()
        ),
        unschedulable=bool(spec.unschedulable),
        # Without the condition only taints show it, as for kube-scheduler; a node that offers
        # nothing yet is not ready in any case.
        ready=ready.status == "True" if ready else bool(allocatable),
        ready_changed_at=utc(ready.last_transition_time) if ready else None,
        created_at=utc(metadata.creation_timestamp),
        deleting=metadata.deletion_timestamp is not None,
        allocatable=allocatable,
        capacity=resources_of(status.capacity),
    )


def decode_csi_node(raw: bytes | Raw) -> CsiNode:
    """Decode one CSINode; raise ValueError when it cannot be read."""
    wire = _CSI_NODE.decode(raw)
    drivers = wire.spec.drivers if wire.spec else None
    return CsiNode(
        name=NodeName(required_name(wire.metadata.name)),
        limits=FrozenMap(
            (driver.name, driver.allocatable.count if driver.allocatable else None)
            for driver in drivers or ()
        ),
    )


def _ready_condition(status: _NodeStatusWire) -> _ConditionWire | None:
    return next(
        (condition for condition in status.conditions or () if condition.type == "Ready"), None
    )


def _kept(annotations: dict[str, str]) -> Labels:
    """Return only what a decision reads: others change with a controller's every heartbeat."""
    return labels_of(
        {
            key: value
            for key, value in annotations.items()
            if key.startswith(OUR_PREFIX) or key in _HONOURED
        }
    )
