"""Soft terms break ties among nodes that exist; they refuse nothing and buy nothing."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.cluster import Node, Pod, PodPreference, Preference, Taint, Toleration
from reconciler.model.selectors import NodeSelectorTerm, Requirement
from reconciler.planner.planner import plan
from tests.builders import (
    HOSTNAME,
    ZONE,
    amounts,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    spread,
)
from tests.unit.planner.placement.fitting import places

SOFT = Taint(key="lifecycle", value="OnDemand", effect="PreferNoSchedule")


def liking(weight: int, key: str, *values: str) -> Preference:
    """Preferred node affinity to nodes with such a label."""
    line = Requirement(key=key, operator="In", values=values)
    return Preference(weight=weight, term=NodeSelectorTerm(expressions=(line,)))


def beside(weight: int, key: str, app: str) -> PodPreference:
    """Preferred affinity to an app's pods; a negative weight avoids them."""
    return PodPreference(weight=weight, term=near(key, app=app))


def at(name: str, zone: str = "a", **changed: Any) -> Node:
    """A node in a zone."""
    return make_node(name, zone=f"us-west-2{zone}", **changed)


@pytest.mark.parametrize(
    ("preferences", "expected"),
    [
        ((), "a"),
        ((liking(1, "disk", "ssd"),), "b"),
        ((liking(10, "disk", "ssd"), liking(20, "gen", "7")), "c"),
        ((liking(30, "disk", "ssd"), liking(20, "gen", "7")), "b"),
        ((liking(1, "disk", "tape"),), "a"),
    ],
)
def test_preferred_node_affinity_chooses_among_nodes_that_take_the_pod(
    preferences: tuple[Preference, ...], expected: str
) -> None:
    """The plan would name one node and kube-scheduler bind to another."""
    nodes = (at("a"), at("b", labels={"disk": "ssd"}), at("c", labels={"gen": "7"}))
    assert places(make_pod(node_preferences=preferences), *nodes) == {"pod": expected}


def test_preference_for_a_node_by_name_reads_the_field() -> None:
    """A term on metadata.name would be taken for one that holds nowhere."""
    field = Requirement(key="metadata.name", operator="In", values=("b",))
    named = Preference(weight=1, term=NodeSelectorTerm(fields=(field,)))
    assert places(make_pod(node_preferences=(named,)), at("a"), at("b")) == {"pod": "b"}


@pytest.mark.parametrize(("tolerates", "expected"), [(False, "spot"), (True, "demand")])
def test_node_with_a_soft_taint_comes_last_unless_it_is_tolerated(
    tolerates: bool, expected: str
) -> None:
    """On-demand nodes would fill up although spot nodes have room."""
    tolerations = (Toleration(key="lifecycle", operator="Exists"),) if tolerates else ()
    pod = make_pod(tolerations=tolerations)
    busy = make_pod("busy", node="demand", cpu=2)  # the fuller one comes first among equals
    assert places(pod, at("demand", taints=(SOFT,)), at("spot"), busy)["pod"] == expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (beside(5, ZONE, "cache"), {"y", "z"}),
        (beside(-5, ZONE, "cache"), {"x"}),
        (beside(5, HOSTNAME, "cache"), {"z"}),
        (beside(-5, HOSTNAME, "cache"), {"x", "y"}),
        (beside(-5, "rack", "cache"), {"z"}),  # no node has a rack: the fullest comes first
    ],
)
def test_preferred_pod_affinity_and_anti_affinity_look_at_running_pods(
    term: PodPreference, expected: set[str]
) -> None:
    """A client would be promised a node far from its cache, or beside a noisy neighbour."""
    nodes = (at("x", "a"), at("y", "b"), at("z", "b"))
    cache = make_pod("cache", node="z", labels={"app": "cache"}, cpu="3500m")
    found = places(make_pod(pod_preferences=(term,), cpu="500m"), *nodes, cache)
    assert found["pod"] in expected


def test_replicas_that_prefer_to_be_apart_are_dealt_over_the_nodes() -> None:
    """All replicas of a Deployment would be promised one node, and leave with it."""
    pods = make_pods(
        6, labels={"app": "web"}, cpu="100m", pod_preferences=(beside(-100, HOSTNAME, "web"),)
    )
    found = places(*pods, at("x"), at("y"), at("z"))
    assert sorted(Counter(found.values()).values()) == [2, 2, 2]


def test_soft_spread_deals_replicas_evenly_over_zones() -> None:
    """A zone that fails would take more than its share of the replicas along."""
    soft = replace(spread(ZONE, app="web"), hard=False)
    pods = make_pods(4, labels={"app": "web"}, cpu="100m", topology_spread=(soft,))
    found = places(*pods, at("x", "a"), at("y", "b"), at("z", "b"))
    assert Counter("x" if n == "x" else "b" for n in found.values()) == {"x": 2, "b": 2}


@pytest.mark.parametrize(
    "changed",
    [
        {"node_preferences": (liking(100, "disk", "ssd"),)},
        {"pod_preferences": (beside(-100, HOSTNAME, "web"),)},
        {"topology_spread": (replace(spread(HOSTNAME, app="web"), hard=False),)},
    ],
)
def test_preferences_never_buy_a_node(changed: dict[str, Any]) -> None:
    """The one node that a choosy pod needs would be taken by pods that only prefer it."""
    fleet = make_fleet_settings(cpu=4, zone="us-west-2a")
    small = amounts(cpu=2, memory="16Gi", pods=58)
    nodes = [
        make_node("plain", fleet, allocatable=small),
        make_node("ssd", fleet, labels={"disk": "ssd"}, allocatable=small),
    ]
    fond: list[Pod] = list(make_pods(2, "fond", labels={"app": "web"}, cpu=1, **changed))
    choosy = make_pod("needs-ssd", cpu=2, node_selector={"disk": "ssd"}, priority=-1)
    made = plan(make_snapshot(*nodes, *fond, choosy), make_settings(fleet))
    assert {p.pod.name: p.node for p in made.placements} == {
        "fond-0": "plain",
        "fond-1": "plain",
        "needs-ssd": "ssd",
    }


def test_thousands_of_replicas_with_soft_terms_are_all_placed() -> None:
    """Looking at each pod on its own over many nodes would take minutes."""
    soft = replace(spread(ZONE, app="web"), hard=False)
    pods = make_pods(1_000, labels={"app": "web"}, cpu="10m", memory="1Mi", topology_spread=(soft,))
    nodes = [at(f"n{i:03}", "abc"[i % 3]) for i in range(300)]
    found = Counter(places(*pods, *nodes).values())
    assert found.total() == 1_000
