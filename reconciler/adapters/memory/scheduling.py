"""A scheduler good enough for tests: resources, selectors, taints; first node by name."""

from collections.abc import Iterable

from reconciler.model.cluster import Node, Pod


def fits(pod: Pod, node: Node, on_node: Iterable[Pod]) -> bool:
    """Whether a pod may be bound to a node that runs these pods."""
    if not node.ready or node.unschedulable or node.deleting:
        return False
    if any(
        taint.effect != "PreferNoSchedule"
        and not any(each.tolerates(taint) for each in pod.spec.tolerations)
        for taint in node.taints
    ):
        return False
    if any(node.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.node_affinity
    if affinity is not None and not affinity.matches(node.labels, node.name):
        return False
    free = dict(node.allocatable)
    for other in on_node:
        for key, value in other.spec.requests.items():
            free[key] = free.get(key, 0) - value
    return all(free.get(key, 0) >= value for key, value in pod.spec.requests.items())
