"""Decodes DaemonSets and namespaces."""

from msgspec import Raw
from msgspec.json import Decoder

from reconciler.model.cluster import DaemonSet, Namespace
from reconciler.records.kubernetes.fields import NULL, MetadataWire, Wire, labels_of, required_name
from reconciler.records.kubernetes.omitted_rules import without_stand_in
from reconciler.records.kubernetes.pods import PodDecoder


class _TemplateMetadataWire(Wire):
    labels: Raw = NULL


class _TemplateWire(Wire):
    spec: Raw
    metadata: _TemplateMetadataWire | None = None


class _DaemonSetSpecWire(Wire):
    template: _TemplateWire


class _DaemonSetStatusWire(Wire):
    desired_number_scheduled: int | None = None
    current_number_scheduled: int | None = None


class _DaemonSetWire(Wire):
    metadata: MetadataWire
    spec: _DaemonSetSpecWire
    status: _DaemonSetStatusWire | None = None


class _NamespaceWire(Wire):
    metadata: MetadataWire


_DAEMON_SET = Decoder(_DaemonSetWire)
_NAMESPACE = Decoder(_NamespaceWire)


def decode_daemon_set(raw: bytes | Raw, pods: PodDecoder) -> DaemonSet:
    """Decode one DaemonSet; raise ValueError when it cannot be read."""
    wire = _DAEMON_SET.decode(raw)
    template, status = wire.spec.template, wire.status or _DaemonSetStatusWire()
    return DaemonSet(
        namespace=wire.metadata.namespace or "default",
        name=required_name(wire.metadata.name),
        uid=wire.metadata.uid or "",
        spec=without_stand_in(pods.template_spec(template.spec)),
        labels=pods.labels(template.metadata.labels if template.metadata else NULL),
        makes_no_pods=bool(status.desired_number_scheduled) and not status.current_number_scheduled,
    )


def decode_namespace(raw: bytes | Raw) -> Namespace:
    """Decode one namespace; raise ValueError when it cannot be read."""
    metadata = _NAMESPACE.decode(raw).metadata
    return Namespace(
        name=required_name(metadata.name),
        labels=labels_of(metadata.labels),
        uid=metadata.uid or "",
    )
