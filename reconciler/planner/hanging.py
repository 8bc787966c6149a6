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
        hang = [p for p in group.pods if _hangs(p, nodes, at)] if group.traits.deleting else []
        if not hang:
            alive.append(group)
            continue
        hanging.append(PodGroup(group.traits, hang))
        rest = [pod for pod in group.pods if not _hangs(pod, nodes, at)]
        if rest:
            alive.append(PodGroup(group.traits, rest))
    return alive, hanging


def _hangs(pod: Pod, nodes: Mapping[NodeName, Node], at: datetime) -> bool:
    node = nodes.get(pod.node_name) if pod.node_name is not None else None
    late = pod.deletion_at is not None and at - pod.deletion_at > HANGS_AFTER
    return late and node is not None and node.ready
