"""A scheduler good enough for tests: resources, selectors, taints, balloons pushed out."""

from collections.abc import Collection, Iterable, Mapping

from reconciler.adapters.memory.settings import Scoring
from reconciler.model.cluster import Node, Pod, PodSpec, Taint, Toleration

Free = Mapping[str, int]
"""What is left of a node's allocatable resources."""


def admits(node: Node, spec: PodSpec) -> bool:
    """Whether the node takes such pods at all, its room left out of account."""
    if not node.ready or node.unschedulable or node.deleting:
        return False
    if node.taints and untolerated(node.taints, spec.tolerations):
        return False
    return selects(spec, node)


def untolerated(taints: Iterable[Taint], tolerations: Collection[Toleration]) -> bool:
    """Whether there is a NoSchedule or NoExecute taint that none of the tolerations is for."""
    return any(
        taint.effect != "PreferNoSchedule"
        and not any(each.tolerates(taint) for each in tolerations)
        for taint in taints
    )


def selects(spec: PodSpec, node: Node) -> bool:
    """Whether a pod's node selector and required node affinity hold on a node."""
    if any(node.labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.node_affinity
    return affinity is None or affinity.matches(node.labels, node.name)


def holds(free: Free, pod: Pod) -> bool:
    """Whether the pod's requests are left."""
    for key, value in pod.spec.requests.items():  # noqa: SIM110 - twice as fast, for each node
        if free.get(key, 0) < value:
            return False
    return True


def free_of(node: Node, on_node: Iterable[Pod]) -> dict[str, int]:
    """What pods that have not finished leave of a node."""
    free = dict(node.allocatable)
    for pod in on_node:
        if not pod.finished:
            for key, value in pod.spec.requests.items():
                free[key] = free.get(key, 0) - value
    return free


def score(scoring: Scoring, node: Node, free: Free, pod: Pod) -> float:
    """The lower the better; equal scores go by name.

    A PreferNoSchedule taint that the pod does not tolerate weighs more than all the room, as in
    kube-scheduler's default profile.
    """
    disliked = (
        0
        if not node.taints
        else sum(
            taint.effect == "PreferNoSchedule"
            and not any(each.tolerates(taint) for each in pod.spec.tolerations)
            for taint in node.taints
        )
    )
    return 2.0 * disliked + _room_score(scoring, node, free)


def _room_score(scoring: Scoring, node: Node, free: Free) -> float:
    if scoring == "by-name":
        return 0.0
    share, counted = 0.0, 0
    for key in ("cpu", "memory"):
        whole = node.allocatable.get(key)
        if whole:
            share += free.get(key, 0) / whole
            counted += 1
    share /= max(1, counted)
    return share if scoring == "most-allocated" else -share


def pushed_out(node: Node, free: Free, on_node: Iterable[Pod], pod: Pod) -> list[Pod] | None:
    """The balloon pods (negative priority) that give way to a pod; None when that is no help."""
    if pod.spec.priority < 0 or not admits(node, pod.spec):
        return None
    left, victims = dict(free), []
    balloons = [p for p in on_node if p.spec.priority < 0 and not p.finished and not p.deleting]
    for each in sorted(balloons, key=lambda p: (p.spec.priority, p.key)):
        if holds(left, pod):
            break
        victims.append(each)
        for key, value in each.spec.requests.items():
            left[key] = left.get(key, 0) + value
    return victims if holds(left, pod) else None
