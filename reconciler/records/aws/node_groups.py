"""Decodes managed node groups of EKS: what the nodes of their Auto Scaling groups are."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from reconciler.model.fleet import NODE_TEMPLATE
from reconciler.model.snapshot import Ignored
from reconciler.records.reasons import reason_of

_EFFECTS = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}


class _TaintWire(Struct, rename="camel"):
    key: str
    effect: str
    value: str | None = None


class _MemberWire(Struct, rename="camel"):
    name: str


class _ResourcesWire(Struct, rename="camel"):
    auto_scaling_groups: tuple[_MemberWire, ...] | None = None


class _Wire(Struct, rename="camel"):
    nodegroup_name: str
    resources: _ResourcesWire | None = None
    labels: dict[str, str] | None = None
    taints: tuple[_TaintWire, ...] | None = None
    instance_types: tuple[str, ...] | None = None
    capacity_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupMember:
    """An Auto Scaling group of a managed node group."""

    name: str
    node_tags: dict[str, str]
    """Node-template tags made from the node group's labels and taints."""
    instance_types: tuple[str, ...]


def read_node_group(found: Any, ignored: list[Ignored]) -> Iterable[NodeGroupMember]:
    """Yield the Auto Scaling groups of a describe-nodegroup answer."""
    try:
        wire = msgspec.convert(found, type=_Wire)
    except (ValueError, RecursionError) as error:
        why = reason_of(error)
        ignored.append(Ignored(code="unreadable", kind="Nodegroup", detail=why))
        return
    members = wire.resources.auto_scaling_groups if wire.resources else None
    for member in members or ():
        yield NodeGroupMember(
            name=member.name,
            node_tags=_node_tags(wire),
            instance_types=wire.instance_types or (),
        )


def _node_tags(wire: _Wire) -> dict[str, str]:
    """Return labels and taints of a managed node group's nodes, as Cluster Autoscaler's tags."""
    labels = {
        "eks.amazonaws.com/nodegroup": wire.nodegroup_name,
        **({"eks.amazonaws.com/capacityType": wire.capacity_type} if wire.capacity_type else {}),
        **(wire.labels or {}),
    }
    tags = {f"{NODE_TEMPLATE}/label/{key}": value for key, value in labels.items()}
    for taint in wire.taints or ():
        effect = _EFFECTS.get(taint.effect, taint.effect)
        tags[f"{NODE_TEMPLATE}/taint/{taint.key}"] = f"{taint.value or ''}:{effect}"
    return tags
