"""Filters that read other pods too: affinity, anti-affinity, spread."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.cluster import Namespace, Node, Pod, PodAffinityTerm, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.selectors import LabelSelector
from tests.builders import HOSTNAME, ZONE, make_node, make_pod, near, selecting, spread
from tests.unit.planner.placement.fitting import fits, places

RACK = "rack"


def at(name: str, zone: str, **changed: Any) -> Node:
    """A node in a zone."""
    return make_node(name, zone=f"us-west-2{zone}", **changed)


def runs(name: str, node: str, app: str = "a", **changed: Any) -> Pod:
    """A running pod of an app."""
    return make_pod(name, node=node, labels={"app": app}, **changed)


@pytest.mark.parametrize(
    ("key", "node", "expected"),
    [
        (ZONE, "same zone", True),
        (ZONE, "other zone", False),
        (HOSTNAME, "same zone", False),
        (HOSTNAME, "same node", True),
        (RACK, "same node", False),
    ],
)
def test_affinity_wants_a_matching_pod_in_the_domain(key: str, node: str, expected: bool) -> None:
    """Pods would be placed away from what they must be near."""
    nodes = {"same node": at("x", "a"), "same zone": at("y", "a"), "other zone": at("z", "b")}
    others = [] if node == "same node" else [at("x", "a", unschedulable=True)]
    pod = make_pod(pod_affinity=(near(key, app="a"),))
    assert fits(pod, nodes[node], *others, runs("db", "x")) == expected


@pytest.mark.parametrize(("own_app", "placed"), [("a", True), ("b", False)])
def test_first_pod_of_a_group_may_go_anywhere_only_if_it_matches_itself(
    own_app: str, placed: bool
) -> None:
    """The first replica would wait for itself; or a client start without its server."""
    pod = make_pod(labels={"app": own_app}, pod_affinity=(near(ZONE, app="a"),))
    assert fits(pod, at("n", "a")) == placed


def test_all_affinity_terms_must_hold() -> None:
    """One of two requirements would be enough."""
    pod = make_pod(pod_affinity=(near(ZONE, app="a"), near(HOSTNAME, app="a")))
    assert places(pod, at("x", "a", unschedulable=True), at("y", "a"), runs("db", "x")) == {}


@pytest.mark.parametrize(
    ("key", "node", "expected"),
    [
        (ZONE, "same zone", False),
        (ZONE, "other zone", True),
        (HOSTNAME, "same zone", True),
        (HOSTNAME, "same node", False),
        (RACK, "same node", True),
    ],
)
def test_anti_affinity_refuses_the_domain_of_a_matching_pod(
    key: str, node: str, expected: bool
) -> None:
    """Replicas would share a failure domain."""
    nodes = {"same node": at("x", "a"), "same zone": at("y", "a"), "other zone": at("z", "b")}
    others = [] if node == "same node" else [at("x", "a", unschedulable=True)]
    anti = make_pod("anti", pod_anti_affinity=(near(key, app="a"),))
    assert fits(anti, nodes[node], *others, runs("db", "x")) == expected
    plain = make_pod("plain", labels={"app": "b"})
    guard = runs("guard", "x", pod_anti_affinity=(near(key, app="b"),))
    assert fits(plain, nodes[node], *others, guard) == expected


def term(**changed: Any) -> PodAffinityTerm:
    """An anti-affinity term by hostname to app a."""
    return PodAffinityTerm(topology_key=HOSTNAME, **{"selector": selecting(app="a"), **changed})


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"namespaces": frozenset({"other"})}, False),
        ({"namespaces": frozenset({"third"})}, True),
        ({"namespace_selector": LabelSelector()}, False),
        ({"namespace_selector": selecting(team="x")}, False),
        ({"namespace_selector": selecting(team="y")}, True),
        ({"namespace_selector": selecting(team="y"), "namespaces": frozenset({"other"})}, False),
        ({"namespaces": frozenset({"other"}), "selector": LabelSelector()}, False),
        ({"namespaces": frozenset({"other"}), "selector": None}, True),
        ({"namespaces": frozenset({"other"}), "match_label_keys": ("rev",)}, True),
        ({"namespaces": frozenset({"other"}), "mismatch_label_keys": ("rev",)}, False),
        ({"namespaces": frozenset({"other"}), "match_label_keys": ("absent",)}, False),
    ],
)
def test_terms_mean_the_namespaces_and_labels_that_kubernetes_says(
    changed: dict[str, Any], expected: bool
) -> None:
    """A term would reach into other namespaces, or not far enough."""
    there = make_pod("there", "other", node="n", labels={"app": "a", "rev": "1"})
    pod = make_pod("here", labels={"rev": "2"}, pod_anti_affinity=(term(**changed),))
    team = Namespace(name="other", labels=FrozenMap({"team": "x"}))
    assert fits(pod, make_node("n"), there, namespaces=(team,)) == expected


@pytest.mark.parametrize(
    ("counts", "skew", "expected"),
    [
        ({"a": 0, "b": 0}, 1, {"a", "b"}),
        ({"a": 1, "b": 0}, 1, {"b"}),
        ({"a": 2, "b": 0}, 1, {"b"}),
        ({"a": 1, "b": 0}, 2, {"a", "b"}),
        ({"a": 2, "b": 1}, 1, {"b"}),
        ({"a": 1, "b": 1}, 1, {"a", "b"}),
    ],
)
def test_spread_allows_the_domains_within_max_skew(
    counts: dict[str, int], skew: int, expected: set[str]
) -> None:
    """Pods would be promised a zone that the scheduler refuses."""
    running = [runs(f"{z}{i}", z) for z, n in counts.items() for i in range(n)]
    zones = [at(z, z) for z in counts]
    rule = replace(spread(ZONE, skew, app="a"), honor_node_affinity=False)
    for zone in counts:
        pod = make_pod(labels={"app": "a"}, topology_spread=(rule,), node_selector={HOSTNAME: zone})
        assert ("pod" in places(pod, *zones, *running)) == (zone in expected)


def test_spread_counts_only_nodes_that_the_pod_may_use_by_default() -> None:
    """A zone that the pod cannot enter would keep it out of every other."""
    pod = make_pod(
        labels={"app": "a"}, topology_spread=(spread(ZONE, app="a"),), node_selector={"pool": "x"}
    )
    mine, foreign = at("mine", "a", labels={"pool": "x"}), at("foreign", "b")
    assert fits(pod, mine, foreign, runs("r", "mine"))


def test_spread_counts_tainted_zones_unless_taints_are_honoured() -> None:
    """A tainted zone counts as empty by default: the scheduler would refuse the pod."""
    tainted = at("t", "b", taints=(Taint(key="k", effect="NoSchedule"),))
    for honour, expected in ((False, False), (True, True)):
        rule = replace(spread(ZONE, app="a"), honor_node_taints=honour)
        pod = make_pod(labels={"app": "a"}, topology_spread=(rule,))
        assert fits(pod, at("n", "a"), tainted, runs("r", "n")) == expected


def test_spread_with_too_few_domains_counts_from_nothing() -> None:
    """MinDomains would have no effect, and all replicas land in the one zone there is."""
    pod = make_pod(labels={"app": "a"}, topology_spread=(spread(ZONE, 1, min_domains=2, app="a"),))
    assert not fits(pod, at("n", "a"), runs("r", "n"))
    relaxed = make_pod(labels={"app": "a"}, topology_spread=(spread(ZONE, 1, app="a"),))
    assert fits(relaxed, at("n", "a"), runs("r", "n"))


@pytest.mark.parametrize(
    ("keys", "labels", "expected"),
    [((), {}, True), (("rev",), {}, True), (("rev",), {"rev": "1"}, False)],
)
def test_spread_whose_selector_is_empty_counts_nobody(
    keys: tuple[str, ...], labels: dict[str, str], expected: bool
) -> None:
    """kube-scheduler puts the pod there; we would buy a node that nobody needs."""
    rule = replace(spread(ZONE), match_label_keys=keys)
    pod = make_pod(labels=labels, topology_spread=(rule,))
    running = make_pod("r", node="n", labels=labels)
    assert fits(pod, at("n", "a"), at("m", "b", unschedulable=True), running) == expected
    assert not fits(pod, make_node("n", zone=None))  # it still asks for the topology's label


def test_node_without_the_topology_label_is_refused_by_spread() -> None:
    """Pods would be promised nodes that are in no domain."""
    pod = make_pod(labels={"app": "a"}, topology_spread=(spread(RACK, app="a"),))
    assert not fits(pod, at("n", "a"))


def test_pods_that_end_do_not_count_for_spread() -> None:
    """A rollout would stand still until old replicas are gone."""
    pod = make_pod(labels={"app": "a"}, topology_spread=(spread(ZONE, app="a"),))
    ending = runs("old", "x", deleting=True)
    assert fits(pod, at("x", "a"), at("y", "b", unschedulable=True), ending)


def test_soft_spread_never_refuses() -> None:
    """ScheduleAnyway would become DoNotSchedule."""
    soft = replace(spread(ZONE, app="a"), hard=False)
    pod = make_pod(labels={"app": "a"}, topology_spread=(soft,))
    assert fits(pod, at("x", "a"), at("y", "b", unschedulable=True), runs("r", "x"))


def test_replicas_spread_evenly_over_zones_when_placed_together() -> None:
    """The first zone would be filled before the second is looked at."""
    pods = [
        make_pod(f"p{i}", labels={"app": "a"}, topology_spread=(spread(ZONE, app="a"),), cpu="100m")
        for i in range(6)
    ]
    found = places(at("x", "a"), at("y", "b"), at("z", "c"), *pods)
    assert sorted(found.values()) == ["x", "x", "y", "y", "z", "z"]


@pytest.mark.parametrize(
    ("here", "there", "skew", "minimum", "expected"),
    [
        (0, 0, 1, 1, True),
        (1, 0, 1, 1, False),
        (1, 0, 2, 1, True),
        (2, 0, 2, 1, False),
        (1, 1, 1, 1, True),
        (1, 1, 1, 3, False),
        (0, 0, 1, 3, True),
    ],
)
def test_spread_by_hostname_counts_every_node(
    here: int, there: int, skew: int, minimum: int, expected: bool
) -> None:
    """Replicas would pile up on one node although another one, full but empty of them, counts."""
    rule = spread(HOSTNAME, skew, min_domains=minimum, app="a")
    pod = make_pod(labels={"app": "a"}, topology_spread=(rule,), cpu="1")
    running = [
        runs(f"{n}{i}", n, cpu="0") for n, c in (("x", here), ("y", there)) for i in range(c)
    ]
    full = runs("full", "y", app="other", cpu="4")
    assert fits(pod, at("x", "a"), at("y", "a"), full, *running) == expected


def test_replicas_spread_by_hostname_fill_nodes_evenly() -> None:
    """More replicas than maxSkew allows would be promised to the first node."""
    rule = spread(HOSTNAME, app="a")
    pods = [
        make_pod(f"p{i}", labels={"app": "a"}, topology_spread=(rule,), cpu="100m")
        for i in range(5)
    ]
    found = places(at("x", "a"), at("y", "a"), *pods)
    counts = sorted(list(found.values()).count(n) for n in ("x", "y"))
    assert counts == [2, 3]


def test_replicas_that_must_share_a_node_are_not_dealt_over_the_zone() -> None:
    """With a zonal rule beside it the second replica was once promised another node."""
    rules: dict[str, Any] = {
        "pod_affinity": (near(HOSTNAME, app="a"),),
        "topology_spread": (spread(ZONE, 4, app="a"),),
    }
    pods = [make_pod(f"p{i}", labels={"app": "a"}, cpu="1500m", **rules) for i in range(4)]
    found = places(at("x", "a"), at("y", "a"), *pods)
    assert len(set(found.values())) == 1
    assert len(found) == 2
