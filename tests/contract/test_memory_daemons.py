"""DaemonSets of the in-memory world are where their controller would put them."""

from dataclasses import replace

import pytest

from reconciler.adapters.memory import MemoryWorld
from reconciler.model.cluster import DaemonSet, Node, PodSpec, Taint, Toleration
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.model.selectors import NodeSelector, NodeSelectorTerm, Requirement

REQUESTS = FrozenMap({"cpu": 500, "pods": 1})
PLAIN = PodSpec(requests=REQUESTS)
DEDICATED = Taint(key="dedicated", value="web", effect="NoSchedule")
TOLERANT = replace(PLAIN, tolerations=(Toleration(key="dedicated", operator="Exists"),))
ON_GPUS = NodeSelector(
    terms=(NodeSelectorTerm(expressions=(Requirement(key="gpu", operator="Exists"),)),)
)


def node(name: str, taints: tuple[Taint, ...] = (), **labels: str) -> Node:
    """A node that has room."""
    return Node(
        name=NodeName(name),
        uid=f"uid-of-{name}",
        labels=FrozenMap(labels),
        taints=taints,
        allocatable=FrozenMap({"cpu": 4000, "pods": 10}),
    )


def daemon_set(spec: PodSpec, namespace: str = "kube-system") -> DaemonSet:
    """A DaemonSet named agent."""
    return DaemonSet(namespace=namespace, name="agent", uid=f"agent-of-{namespace}", spec=spec)


def where(world: MemoryWorld) -> list[str]:
    """The nodes of all daemons, by name."""
    return sorted(str(pod.node_name) for pod in world.pods() if pod.daemon)


@pytest.mark.parametrize("first", ["daemon set", "node"])
@pytest.mark.parametrize(
    ("spec", "place", "runs"),
    [
        (PLAIN, node("n"), True),
        (PLAIN, node("n", (DEDICATED,)), False),
        (PLAIN, node("n", (replace(DEDICATED, effect="NoExecute"),)), False),
        (PLAIN, node("n", (replace(DEDICATED, effect="PreferNoSchedule"),)), True),
        (TOLERANT, node("n", (DEDICATED,)), True),
        (
            PLAIN,
            node("n", (Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),)),
            True,
        ),
        (PLAIN, replace(node("n"), unschedulable=True), True),
        (replace(PLAIN, node_affinity=ON_GPUS), node("n"), False),
        (replace(PLAIN, node_affinity=ON_GPUS), node("n", gpu="1"), True),
        (replace(PLAIN, node_selector=FrozenMap({"gpu": "1"})), node("n"), False),
    ],
)
def test_daemons_run_where_taints_and_affinity_let_them(
    first: str, spec: PodSpec, place: Node, runs: bool
) -> None:
    """One on a node that its DaemonSet leaves out takes room that pods are promised."""
    world = MemoryWorld()
    if first == "node":
        world.add_node(place)
    world.add_daemon_set(daemon_set(spec))
    if first == "daemon set":
        world.add_node(place)
    assert where(world) == (["n"] if runs else [])


def test_daemon_comes_when_the_taint_goes_and_only_once() -> None:
    """Its controller looks again at each node that changes."""
    world = MemoryWorld()
    world.add_daemon_set(daemon_set(PLAIN))
    world.add_node(node("n", (DEDICATED,)))
    for taints in [(), (DEDICATED,), ()]:
        world.add_node(node("n", taints))
        assert where(world) == ["n"]


def test_daemon_that_ends_returns_only_where_it_may_run() -> None:
    """A NoSchedule taint lets a daemon stay, and none be made."""
    world = MemoryWorld()
    world.add_daemon_set(daemon_set(PLAIN))
    for name in ("kept", "tainted"):
        world.add_node(node(name))
    world.add_node(node("tainted", (DEDICATED,)))
    assert where(world) == ["kept", "tainted"]
    for pod in world.pods():
        world.stop_pod(pod.key)
    world.advance(60)
    assert where(world) == ["kept"]


def test_daemon_sets_of_one_name_in_two_namespaces_are_two() -> None:
    """A daemon that ends would come back twice."""
    world = MemoryWorld()
    world.add_node(node("n"))
    for namespace in ("kube-system", "monitoring"):
        world.add_daemon_set(daemon_set(PLAIN, namespace))
    world.stop_pod(world.pods()[0].key)
    world.advance(60)
    assert sorted(p.key.namespace for p in world.pods()) == ["kube-system", "monitoring"]
