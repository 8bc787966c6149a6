"""Explains why no node takes a pod, in kube-scheduler's words."""

from collections import Counter

from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters import inter_pod_affinity
from reconciler.planner.placement.simulation import Simulation

_WORDS = {
    "node-selector": "node(s) didn't match Pod's node affinity/selector",
    "node-affinity": "node(s) didn't match Pod's node affinity/selector",
    "zone": "node(s) didn't match Pod's node affinity/selector",
    "taint": "node(s) had untolerated taint(s)",
    "pod-affinity": "node(s) didn't match pod affinity rules",
    "pod-anti-affinity": "node(s) didn't match pod anti-affinity rules",
    "topology-spread": "node(s) didn't match pod topology spread constraints",
    "host-port": "node(s) didn't have free ports for the requested pod ports",
    "volume-zone": "node(s) had volume node affinity conflict",
    "volume-limit": "node(s) exceed max volume count",
    "volume-binding": "node(s) didn't find available persistent volumes to bind",
    "volume-in-use": "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod",
    "insufficient-pods": "Too many pods",
}


def unschedulable_message(sim: Simulation, pod_class: PodClass) -> str:
    """Return the PodScheduled condition's message: how many nodes refused, and why."""
    if not sim.rows:
        return "no nodes available to schedule pods"
    counts: Counter[str] = Counter()
    codes = [sim.refusal(pod_class, int(kind)) for kind in sim.kinds]
    for row, code in enumerate(codes):
        if code:
            counts[_words(code)] += 1
        else:
            counts.update(_dynamic(sim, pod_class, row))
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    total = sim.rows
    return (
        f"0/{total} nodes are available: {listed}. preemption: 0/{total} nodes are available: "
        f"{total} Preemption is not helpful for scheduling."
    )


def _words(code: str) -> str:
    if code in _WORDS:
        return _WORDS[code]
    return f"Insufficient {code.removeprefix('insufficient-')}"


def _dynamic(sim: Simulation, pod_class: PodClass, row: int) -> set[str]:
    """Return what a node lacks that static filters allow."""
    lacking = {
        _words(sim.dimensions.code(int(column), pod_class.spec.requests))
        for column in pod_class.columns
        if sim.free[row, column] < pod_class.requests[column]
    }
    return lacking or {_words(_counter_code(sim, pod_class, row))}


def _counter_code(sim: Simulation, pod_class: PodClass, row: int) -> str:
    links = sim.links(pod_class)
    room = sim.resource_room(pod_class)
    if inter_pod_affinity.affinity_room(links, room)[row] <= 0:
        return "pod-affinity"
    if inter_pod_affinity.anti_affinity_room(links, room)[row] <= 0:
        return "pod-anti-affinity"
    return "topology-spread"
