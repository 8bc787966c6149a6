"""Displaced pods: EC2 takes their node back, so they count as demand while they still run."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from reconciler.model.cluster import Pod
from reconciler.model.counted_pods import counts
from reconciler.model.ids import NodeName
from reconciler.planner.demand import Demand, find_demand
from reconciler.planner.pod_groups import group_pods
from reconciler.planner.settings import PlannerSettings


def displaced_pods(pods: Iterable[Pod], interrupted: Collection[NodeName]) -> Sequence[Pod]:
    """Return the pods that a controller will recreate when their nodes are gone.

    The successor of a pod that is being deleted exists already, and nothing recreates a bare pod.
    """
    if not interrupted:
        return ()
    return [
        pod
        for pod in pods
        if pod.node_name in interrupted
        and counts(pod)
        and pod.owner is not None
        and not (pod.deleting or pod.unreadable)
    ]


def with_displaced(demand: Demand, displaced: Sequence[Pod], settings: PlannerSettings) -> Demand:
    """Return the demand with these pods added, as their successors would ask."""
    if not displaced:
        return demand
    unbound = [
        replace(pod, node_name=None, nominated_node_name=None, phase="Pending") for pod in displaced
    ]
    also = find_demand(group_pods(unbound), settings)
    return replace(demand, unschedulable=(*demand.unschedulable, *also.unschedulable))
