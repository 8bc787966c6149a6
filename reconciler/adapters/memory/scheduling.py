"""What the in-memory scheduler checks on a node: resources, selectors, taints, ports, balloons."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from reconciler.adapters.memory.settings import Scoring
from reconciler.model.cluster import HostPort, Node, Pod, PodSpec, Taint, Toleration
from reconciler.model.ids import NodeName

Free = Mapping[str, int]
"""The free part of a node's allocatable resources."""
SPECS_MAX = 4096
"""How many specs have cached results."""


def admits(node: Node, spec: PodSpec) -> bool:
    """Return whether the node takes such pods at all, regardless of free room."""
    if not node.ready or node.unschedulable or node.deleting:
        return False
    if node.taints and untolerated(node.taints, spec.tolerations):
        return False
    return selects(spec, node)


def untolerated(taints: Iterable[Taint], tolerations: Collection[Toleration]) -> bool:
    """Return whether there is a NoSchedule or NoExecute taint that no toleration matches."""
    return any(
        taint.effect != "PreferNoSchedule"
        and not any(toleration.tolerates(taint) for toleration in tolerations)
        for taint in taints
    )


def selects(spec: PodSpec, node: Node) -> bool:
    """Return whether a pod's node selector and required node affinity match a node."""
    if any(node.labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.node_affinity
    return affinity is None or affinity.matches(node.labels, node.name)


def holds(free: Free, pod: Pod) -> bool:
    """Return whether the pod's requests are free."""
    for key, value in pod.spec.requests.items():  # noqa: SIM110 - twice as fast, for each node
        if free.get(key, 0) < value:
            return False
    return True


class TakenPorts:
    """The host ports that pods use on their nodes."""

    def __init__(self) -> None:
        self._on: dict[NodeName, Counter[HostPort]] = {}

    def change(self, pod: Pod, sign: int) -> None:
        """Record that a pod starts (1) or stops (-1) using its ports on its node."""
        assert pod.node_name is not None
        held = self._on.setdefault(pod.node_name, Counter())
        for port in pod.spec.host_ports:
            held[port] += sign
            if not held[port]:
                del held[port]
        if not held:
            del self._on[pod.node_name]

    def free(self, node: NodeName, wanted: Iterable[HostPort]) -> bool:
        """Return whether nothing on a node uses any of these ports."""
        held = self._on.get(node, ())
        return not any(port.collides(other) for port in wanted for other in held)


class NodesOfSpecs:
    """Keeps, for each spec, the nodes for which a condition holds, as nodes change.

    Args:
        nodes: All nodes, as they are at any time.
        holds_of: The condition on a node and a spec.
    """

    def __init__(
        self, nodes: Mapping[NodeName, Node], holds_of: Callable[[Node, PodSpec], bool]
    ) -> None:
        self._nodes = nodes
        self._holds_of = holds_of
        self._known: dict[int, tuple[PodSpec, dict[NodeName, Node]]] = {}
        """By the id of a spec."""

    def of(self, spec: PodSpec) -> Mapping[NodeName, Node]:
        """Return the nodes for which it holds."""
        known = self._known.get(id(spec))
        if known is None or known[0] is not spec:
            if len(self._known) >= SPECS_MAX:
                self._known.clear()
            holds_of = self._holds_of
            nodes = {name: node for name, node in self._nodes.items() if holds_of(node, spec)}
            known = self._known[id(spec)] = (spec, nodes)
        return known[1]

    def node_changed(self, name: NodeName) -> None:
        """Record a node that was added, removed or changed."""
        node, holds_of = self._nodes.get(name), self._holds_of
        for spec, nodes in self._known.values():
            nodes.pop(name, None)
            if node is not None and holds_of(node, spec):
                nodes[name] = node


def free_of(node: Node, on_node: Iterable[Pod]) -> dict[str, int]:
    """Return what pods that have not finished leave free on a node."""
    free = dict(node.allocatable)
    for pod in on_node:
        if not pod.finished:
            for key, value in pod.spec.requests.items():
                free[key] = free.get(key, 0) - value
    return free


def score(scoring: Scoring, node: Node, free: Free, pod: Pod) -> float:
    """Return a score; the lowest wins, equal scores are ordered by name.

    A PreferNoSchedule taint that the pod does not tolerate outweighs free room, as in
    kube-scheduler's default profile.
    """
    disliked = (
        0
        if not node.taints
        else sum(
            taint.effect == "PreferNoSchedule"
            and not any(toleration.tolerates(taint) for toleration in pod.spec.tolerations)
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
    """Return the balloon pods to displace for a pod; None when that does not help."""
    if pod.spec.priority < 0 or not admits(node, pod.spec):
        return None
    left, victims = dict(free), []
    balloons = [p for p in on_node if p.spec.priority < 0 and not p.finished and not p.deleting]
    for balloon in sorted(balloons, key=lambda p: (p.spec.priority, p.key)):
        if holds(left, pod):
            break
        victims.append(balloon)
        for key, value in balloon.spec.requests.items():
            left[key] = left.get(key, 0) + value
    return victims if holds(left, pod) else None
