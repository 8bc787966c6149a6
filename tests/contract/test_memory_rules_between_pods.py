"""The in-memory scheduler keeps rules between pods, and host ports, as kube-scheduler does."""

from dataclasses import replace

import pytest

from reconciler.adapters.memory import MemoryWorld
from reconciler.model.cluster import (
    HostPort,
    Node,
    Pod,
    PodAffinityTerm,
    PodSpec,
    Taint,
    TopologySpreadConstraint,
)
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.selectors import LabelSelector

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
PLAIN = PodSpec(requests=FrozenMap({"cpu": 100, "pods": 1}))
NOISY = LabelSelector(match_labels=FrozenMap({"app": "noisy"}))
TERM = PodAffinityTerm(topology_key=HOST, selector=NOISY)
SPREAD = TopologySpreadConstraint(topology_key=ZONE, max_skew=1, hard=True, selector=NOISY)
ANYWHERE = LabelSelector()


def world_of(*names: str) -> MemoryWorld:
    """A world with nodes named SECTOR-ZONE."""
    world = MemoryWorld()
    for name in names:
        sector, zone = name.split("-")
        world.add_node(
            Node(
                name=NodeName(name),
                uid=name,
                labels=FrozenMap({HOST: name, ZONE: zone, "sector": sector}),
                allocatable=FrozenMap({"cpu": 4000, "pods": 50}),
            )
        )
    return world


def place(
    world: MemoryWorld, name: str, spec: PodSpec, namespace: str = "default", **labels: str
) -> str:
    """A pod comes: the node that it is bound to then, or `None`."""
    key = PodKey(namespace=namespace, name=name)
    world.add_pod(Pod(key=key, spec=spec, labels=FrozenMap(labels or {"app": name})))
    return node_of(world, name)


def node_of(world: MemoryWorld, name: str) -> str:
    """The node of a pod."""
    return next(str(pod.node_name) for pod in world.pods() if pod.key.name == name)


def test_spread_counts_only_nodes_that_the_pods_select() -> None:
    """Pods in a zone that they cannot use do not keep further ones waiting."""
    world = world_of("web-a", "web-b", "ci-c")
    web = replace(PLAIN, node_selector=FrozenMap({"sector": "web"}), topology_spread=(SPREAD,))
    nodes = [place(world, f"api{n}", web, app="noisy") for n in range(4)]
    assert sorted(nodes) == ["web-a", "web-a", "web-b", "web-b"]
    ignoring = replace(web, topology_spread=(replace(SPREAD, honor_node_affinity=False),))
    assert place(world, "more", ignoring, app="noisy") == "None"


@pytest.mark.parametrize(("honoured", "found"), [(False, "None"), (True, "web-a")])
def test_spread_counts_tainted_nodes_unless_its_policy_forbids_it(
    honoured: bool, found: str
) -> None:
    """The default of nodeTaintsPolicy is Ignore."""
    world = world_of("web-a", "ci-b")
    tainted = world.nodes()[0]
    assert tainted.name == "ci-b"
    taint = Taint(key="dedicated", effect="NoSchedule")
    world.add_node(replace(tainted, taints=(taint,)))
    spec = replace(PLAIN, topology_spread=(replace(SPREAD, honor_node_taints=honoured),))
    assert place(world, "first", spec, app="noisy") == "web-a"
    assert place(world, "second", spec, app="noisy") == found


def test_spread_counts_a_revision_for_itself_where_it_names_the_label() -> None:
    """A rollout would wait for the pods of the old revision (matchLabelKeys)."""
    world = world_of("web-a", "web-b")
    by_host = replace(SPREAD, topology_key=HOST, match_label_keys=("revision",))
    spec = replace(PLAIN, topology_spread=(by_host,))
    on_a = replace(spec, node_selector=FrozenMap({HOST: "web-a"}))
    for revision in "123":
        assert place(world, f"p{revision}", on_a, app="noisy", revision=revision) == "web-a"


def test_bound_pods_keep_those_away_that_their_anti_affinity_means() -> None:
    """The rule is kept both ways; it ends with the pod that has it."""
    world = world_of("web-a")
    assert place(world, "quiet", replace(PLAIN, pod_anti_affinity=(TERM,))) == "web-a"
    assert place(world, "noisy", PLAIN) == "None"
    assert place(world, "other", PLAIN) == "web-a"
    (quiet,) = [pod for pod in world.pods() if pod.key.name == "quiet"]
    world.remove_pod(quiet.key)
    assert node_of(world, "noisy") == "web-a"


def test_pod_kept_away_from_a_zone_finds_room_in_all_of_it_when_the_rule_ends() -> None:
    """Room comes free on other nodes than the one that a pod left."""
    world = world_of("ci-a", "web-a")
    rule = replace(PLAIN, pod_anti_affinity=(replace(TERM, topology_key=ZONE),))
    assert place(world, "quiet", replace(rule, node_selector=FrozenMap({"sector": "ci"}))) == "ci-a"
    web = replace(PLAIN, node_selector=FrozenMap({"sector": "web"}))
    assert place(world, "noisy", web) == "None"
    world.remove_pod(next(pod.key for pod in world.pods() if pod.key.name == "quiet"))
    assert node_of(world, "noisy") == "web-a"


@pytest.mark.parametrize(
    ("term", "meant"),
    [
        (TERM, False),
        (replace(TERM, namespaces=frozenset({"team-b"})), True),
        (replace(TERM, namespaces=frozenset({"team-c"})), False),
        (replace(TERM, namespace_selector=ANYWHERE), True),
        (
            replace(
                TERM,
                namespace_selector=LabelSelector(
                    match_labels=FrozenMap({"kubernetes.io/metadata.name": "team-b"})
                ),
            ),
            True,
        ),
    ],
)
def test_terms_mean_the_pods_of_the_namespaces_that_they_name(
    term: PodAffinityTerm, meant: bool
) -> None:
    """Without it pods with affinity stay pending, and anti-affinity keeps nothing apart."""
    near, apart = replace(PLAIN, pod_affinity=(term,)), replace(PLAIN, pod_anti_affinity=(term,))
    world = world_of("web-a")
    assert place(world, "noisy", PLAIN, "team-b") == "web-a"
    assert place(world, "near", near) == ("web-a" if meant else "None")
    assert place(world, "apart", apart) == ("None" if meant else "web-a")


def test_pods_with_equal_specs_in_two_namespaces_are_two_questions() -> None:
    """What is refused for one may do for the other."""
    world = world_of("web-a")
    apart = replace(PLAIN, pod_anti_affinity=(TERM,))
    assert place(world, "noisy", PLAIN) == "web-a"
    assert place(world, "first", apart) == "None"
    assert place(world, "second", apart, "team-b") == "web-a"


def test_pod_that_waits_to_be_near_another_is_bound_with_it() -> None:
    """It came first, and nothing else happens afterwards."""
    world = world_of("web-a")
    assert place(world, "near", replace(PLAIN, pod_affinity=(TERM,))) == "None"
    assert place(world, "noisy", PLAIN) == "web-a"
    assert node_of(world, "near") == "web-a"


@pytest.mark.parametrize(
    ("one", "other", "collide"),
    [
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 80), True),  # noqa: S104 - every address
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),  # noqa: S104 - every address
        (("10.0.0.2", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "UDP", 80), False),  # noqa: S104 - every address
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 81), False),  # noqa: S104 - every address
    ],
)
def test_pods_that_take_one_host_port_are_on_two_nodes(
    one: tuple[str, str, int], other: tuple[str, str, int], collide: bool
) -> None:
    """A node has each port once; it is free again when its pod has ended."""
    world = world_of("web-a")
    specs = [
        replace(PLAIN, host_ports=(HostPort(address=address, protocol=protocol, port=port),))
        for address, protocol, port in (one, other)
    ]
    assert place(world, "first", specs[0]) == "web-a"
    assert place(world, "second", specs[1]) == ("None" if collide else "web-a")
    world.finish_pod(next(pod.key for pod in world.pods() if pod.key.name == "first"))
    assert node_of(world, "second") == "web-a"
