"""Decodes one Kubernetes object of any kind, or says why it cannot be decoded."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from msgspec import Raw

from reconciler.model.cluster import (
    DaemonSet,
    Namespace,
    Node,
    Pod,
    PodDisruptionBudget,
    PodPhase,
    PodSpec,
)
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName, PodKey, instance_id_of
from reconciler.model.snapshot import Ignored
from reconciler.model.text import replace_surrogates
from reconciler.model.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from reconciler.records.kubernetes.disruption_budgets import decode_budget
from reconciler.records.kubernetes.fields import labels_of
from reconciler.records.kubernetes.nodes import decode_csi_node, decode_node
from reconciler.records.kubernetes.pods import PHASES, PodDecoder
from reconciler.records.kubernetes.saved_state import LEASE_NAME, SavedState, decode_lease
from reconciler.records.kubernetes.storage import (
    decode_claim,
    decode_storage_class,
    decode_volume,
)
from reconciler.records.kubernetes.workloads import decode_daemon_set, decode_namespace
from reconciler.records.reasons import reason_of

ClusterObject = (
    Pod
    | Node
    | DaemonSet
    | PodDisruptionBudget
    | PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CsiNode
    | Namespace
    | SavedState
)

NAMESPACED = frozenset({"Pod", "DaemonSet", "PodDisruptionBudget", "PersistentVolumeClaim"})

Identity = tuple[str, str, str, str]
"""Kind, namespace, name and, for pods, uid, since their names are reused at once."""

_OCCUPIES = PodSpec(requests=FrozenMap({"pods": 1}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The result for one object; both parts are set for an unreadable one that still counts."""

    identity: Identity
    value: ClusterObject | None = None
    ignored: Ignored | None = None


class ObjectDecoder:
    """Decodes objects one by one; use one decoder as long as specs are to be shared."""

    def __init__(self) -> None:
        self._pods = PodDecoder()
        self._decoders: dict[str, Callable[[bytes | Raw], ClusterObject | None]] = {
            "Pod": self._pods.pod,
            "Node": decode_node,
            "Namespace": decode_namespace,
            "PersistentVolumeClaim": decode_claim,
            "PersistentVolume": decode_volume,
            "DaemonSet": lambda raw: decode_daemon_set(raw, self._pods),
            "PodDisruptionBudget": decode_budget,
            "StorageClass": decode_storage_class,
            "CSINode": decode_csi_node,
            "Lease": decode_lease,
        }

    def decode(self, kind: str, raw: bytes | Raw) -> Decoded | None:
        """Decode one object of a kind in `API_GROUPS`; None for a foreign Lease.

        Never raises for the object's content: an unreadable one is reported in `ignored`, and kept
        as a stand-in where that protects it.
        """
        try:
            value = self._decoders[kind](raw)
            if value is None:
                return None
            identity = identity_of(kind, value)
        except (ValueError, OverflowError, RecursionError) as error:
            return unreadable(kind, bytes(raw), reason_of(error))
        ignored = None
        if isinstance(value, SavedState) and value.unreadable:
            ignored = Ignored(code="unreadable", kind=kind, name=identity[2])
        return Decoded(identity=identity, value=value, ignored=ignored)


def identity_of(kind: str, value: ClusterObject) -> Identity:
    """Return what identifies an object: two values with the same are one object."""
    match value:
        case Pod():
            return kind, value.key.namespace, value.key.name, value.key.uid
        case DaemonSet() | PodDisruptionBudget() | PersistentVolumeClaim():
            return kind, value.namespace, value.name, ""
        case SavedState():
            return kind, value.namespace, LEASE_NAME, ""
        case _:
            return kind, "", value.name, ""


def unreadable(kind: str, raw: bytes, why: str = "") -> Decoded:
    """Report an object that could not be read, with as much of it as is readable."""
    try:
        loaded = json.loads(raw)
    except (ValueError, RecursionError):
        loaded = None
    found: dict[str, Any] = loaded if isinstance(loaded, dict) else {}
    metadata = _mapping(found, "metadata")
    name, uid = _text(metadata, "name"), _text(metadata, "uid")
    namespace = _text(metadata, "namespace")
    if kind in NAMESPACED:
        namespace = namespace or "default"
    named = kind in NAMESPACED
    return Decoded(
        identity=(kind, namespace if named else "", name, uid if kind == "Pod" else ""),
        value=_stand_in(kind, found, PodKey(namespace=namespace, name=name, uid=uid)),
        ignored=Ignored(code="unreadable", kind=kind, namespace=namespace, name=name, detail=why),
    )


def _stand_in(kind: str, found: dict[str, Any], key: PodKey) -> ClusterObject | None:
    """Return the value that keeps an unreadable object from being overlooked."""
    spec = _mapping(found, "spec")
    match kind:
        case "Pod":
            node_name = _text(spec, "nodeName")
            if not node_name:
                return None
            phase = _text(_mapping(found, "status"), "phase")
            return Pod(
                key=key,
                spec=_OCCUPIES,
                phase=cast("PodPhase", phase) if phase in PHASES else "Unknown",
                node_name=NodeName(node_name),
                unreadable=True,
            )
        case "Node":
            provider_id = _text(spec, "providerID")
            instance_id = instance_id_of(provider_id)
            labels = _mapping(_mapping(found, "metadata"), "labels")
            return Node(
                # A node without a name still belongs to an instance: it needs a name to be counted.
                name=NodeName(key.name or instance_id or key.uid),
                uid=key.uid,
                provider_id=provider_id,
                instance_id=instance_id,
                labels=labels_of(
                    {k: _text(labels, k) for k, v in labels.items() if isinstance(v, str)}
                ),
                ready=False,
                unreadable=True,
            )
        case "PodDisruptionBudget":
            return PodDisruptionBudget(
                namespace=key.namespace,
                name=key.name,
                selector=None,
                disruptions_allowed=0,
                unreadable=True,
            )
        case _:
            return None


def _mapping(parent: dict[str, Any], key: str) -> dict[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _text(parent: dict[str, Any], key: str) -> str:
    """Return a text as UTF-8 can encode it, empty where there is none."""
    value = parent.get(key)
    return replace_surrogates(value) if isinstance(value, str) else ""
