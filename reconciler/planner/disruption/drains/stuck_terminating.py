"""Pods that are stuck terminating: they do not keep a node whose kubelet answers.

After the grace period the kubelet has killed a pod's containers. What keeps the object after that
is a finalizer or a volume, possibly forever. On a node that does not answer the pod may still run.
kube-scheduler continues to count the requests of such a pod.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import NodeName
from reconciler.planner.pod_groups import PodGroup

STUCK_AFTER = timedelta(seconds=60)
"""How long after the end of its grace period a pod counts as stuck.

Source: Karpenter uses the same time, Cluster Autoscaler 30 s (read 2026-11).
"""


def parted_by_stuck_terminating(
    groups: Iterable[PodGroup], nodes: Mapping[NodeName, Node], at: datetime
) -> tuple[list[PodGroup], list[PodGroup]]:
    """Return the pods that run or still have time to end, and those stuck terminating."""
    alive: list[PodGroup] = []
    stuck: list[PodGroup] = []
    for group in groups:
        if not group.traits.deleting:
            alive.append(group)
            continue
        parts: dict[bool, list[Pod]] = {}
        for pod in group.pods:
            parts.setdefault(_is_stuck(pod, nodes, at), []).append(pod)
        for is_stuck, pods in parts.items():
            (stuck if is_stuck else alive).append(PodGroup(group.traits, pods))
    return alive, stuck


def _is_stuck(pod: Pod, nodes: Mapping[NodeName, Node], at: datetime) -> bool:
    node = nodes.get(pod.node_name) if pod.node_name is not None else None
    late = pod.deletion_at is not None and at - pod.deletion_at > STUCK_AFTER
    return late and node is not None and node.ready
