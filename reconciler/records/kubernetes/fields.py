"""Parts that many Kubernetes kinds share: metadata, quantities, labels, selectors, times."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Raw, Struct, field

from reconciler.model.cluster import Resources
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.quantity import resource_amount
from reconciler.model.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
)

NULL = Raw(b"null")

Quantity = str | int | float
"""A Kubernetes quantity: the API server writes strings, and also accepts bare numbers."""

AMOUNT_LIMIT: Final = 2**63 - 1
"""From here on it is no quantity: `resource_amount` caps there, as the API server does."""


API_GROUPS: dict[str, str] = {
    "Pod": "",
    "Node": "",
    "Namespace": "",
    "PersistentVolumeClaim": "",
    "PersistentVolume": "",
    "DaemonSet": "apps",
    "PodDisruptionBudget": "policy",
    "StorageClass": "storage.k8s.io",
    "CSINode": "storage.k8s.io",
    "Lease": "coordination.k8s.io",
}
"""The kinds that planning uses; other groups have kinds of the same names (Rancher's `Node`)."""


class Wire(Struct, gc=False, rename="camel"):
    """Base of the structs that mirror the parts of Kubernetes JSON that planning reads.

    `null` means absent everywhere, as in the API server's own decoder.
    """


class OwnerReferenceWire(Wire):
    """metadata.ownerReferences[]."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class MetadataWire(Wire):
    """metadata, without annotations: each kind reads its own."""

    name: str
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class RequirementWire(Wire):
    """One requirement of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None


class NodeRequirementWire(Wire):
    """One requirement of a node selector term."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] | None = None


class LabelSelectorWire(Wire):
    """metav1.LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[RequirementWire, ...] | None = None


class NodeSelectorTermWire(Wire):
    """core/v1 NodeSelectorTerm."""

    match_expressions: tuple[NodeRequirementWire, ...] | None = None
    match_fields: tuple[NodeRequirementWire, ...] | None = None


class NodeSelectorWire(Wire):
    """core/v1 NodeSelector."""

    node_selector_terms: tuple[NodeSelectorTermWire, ...] | None = None


class PresentWire(Wire):
    """Something of which only the presence counts."""


class ElasticBlockStoreWire(Wire):
    """An in-tree awsElasticBlockStore volume: `vol-…` or `aws://us-west-2a/vol-…`."""

    volume_id: str = field(name="volumeID", default="")

    @property
    def handle(self) -> str:
        """Return the volume's id as the EBS CSI driver names it."""
        return self.volume_id.rsplit("/", 1)[-1]


def required_name(name: str) -> str:
    """Return the name, which every object must have.

    Raises:
        ValueError: It is empty.
    """
    if not name:
        raise ValueError("metadata.name is empty")
    return name


def amount_of(resource: str, quantity: Quantity) -> int:
    """Return a quantity in the model's unit.

    Raises:
        ValueError: Not a quantity, negative, or absurdly large.
    """
    text = quantity if isinstance(quantity, str) else repr(quantity)
    amount = resource_amount(resource, text)
    if not 0 <= amount < AMOUNT_LIMIT:
        raise ValueError(f"{text[:40]!r} is not an amount of {resource}")
    return amount


def amounts_of(quantities: Mapping[str, Quantity] | None) -> dict[str, int]:
    """Return all amounts of a resource list; raise ValueError as `amount_of`."""
    return {key: amount_of(key, value) for key, value in (quantities or {}).items()}


def resources_of(quantities: Mapping[str, Quantity] | None) -> Resources:
    """Return a resource list in the model's form; raise ValueError as `amount_of`."""
    return FrozenMap(amounts_of(quantities))


def labels_of(labels: Mapping[str, str] | None) -> Labels:
    """Return labels in the model's form."""
    return FrozenMap(labels) if labels else NO_LABELS


def utc(moment: datetime | None) -> datetime | None:
    """Return the moment in UTC; a time without a zone is UTC, as in EC2 and kubectl."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def requirement_of(wire: RequirementWire | NodeRequirementWire) -> Requirement:
    """Return a selector's requirement in the model."""
    return Requirement(key=wire.key, operator=wire.operator, values=wire.values or ())


def label_selector_of(wire: LabelSelectorWire | None) -> LabelSelector | None:
    """Return a label selector in the model: None matches nothing, an empty one everything."""
    if wire is None:
        return None
    return LabelSelector(
        match_labels=labels_of(wire.match_labels),
        match_expressions=tuple(map(requirement_of, wire.match_expressions or ())),
    )


def node_selector_term_of(wire: NodeSelectorTermWire) -> NodeSelectorTerm:
    """Return a node selector term in the model."""
    return NodeSelectorTerm(
        expressions=tuple(map(requirement_of, wire.match_expressions or ())),
        fields=tuple(map(requirement_of, wire.match_fields or ())),
    )


def node_selector_of(wire: NodeSelectorWire | None) -> NodeSelector | None:
    """Return a node selector in the model; None when there is none."""
    if wire is None:
        return None
    return NodeSelector(terms=tuple(map(node_selector_term_of, wire.node_selector_terms or ())))
