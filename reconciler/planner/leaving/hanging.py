"""Pods that hang in deletion: they keep no node whose kubelet answers.

After the grace period it has killed a pod's containers; what keeps the object then is a finalizer
or a volume, and that may last for ever. Of a node that is silent nobody knows what still runs.
kube-scheduler goes on counting what such a pod asks for.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import NodeName
from reconciler.planner.census import PodGroup

HANGS_AFTER = timedelta(seconds=60)
"""After the end of the grace period. Source: Karpenter takes a pod for stuck after as long,
Cluster Autoscaler after 30 s (read 2026-11)."""


def parted_by_hanging(
    groups: Iterable[PodGroup], nodes: Mapping[NodeName, Node], at: datetime
) -> tuple[list[PodGroup], list[PodGroup]]:
    """The pods that run or end in time, and those that hang in deletion."""
    alive: list[PodGroup] = []
    hanging: list[PodGroup] = []
    for group in groups:
        if not group.traits.deleting:
            alive.append(group)
            continue
        parts: dict[bool, list[Pod]] = {}
        for pod in group.pods:
            parts.setdefault(_hangs(pod, nodes, at), []).append(pod)
        for hang, pods in parts.items():
            (hanging if hang else alive).append(PodGroup(group.traits, pods))
    return alive, hanging


def _hangs(pod: Pod, nodes: Mapping[NodeName, Node], at: datetime) -> bool:
    node = nodes.get(pod.node_name) if pod.node_name is not None else None
    late = pod.deletion_at is not None and at - pod.deletion_at > HANGS_AFTER
    return late and node is not None and node.ready
