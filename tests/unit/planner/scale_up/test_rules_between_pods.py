"""Affinity, anti-affinity and spread among pods that are placed together (docs/scale-up.md)."""

from collections import Counter
from typing import Any

import pytest

from reconciler.model.cluster import Pod, PodAffinityTerm
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    HOSTNAME,
    ZONE,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    requiring,
    spread,
)
from tests.unit.planner.placed import bought

ZONES = ("us-west-2a", "us-west-2b")


def places(made: Plan) -> list[tuple[object, ...]]:
    """Where each placed pod goes."""
    return [(p.node, p.fleet, p.launching, p.new_node) for p in made.placements]


@pytest.mark.parametrize("target", [0, 2])
def test_zonal_anti_affinity_never_shares_one_new_node(target: int) -> None:
    """Whatever zone EC2 chooses for the node, both pods would be in it."""
    fleet = make_fleet_settings(zones=ZONES)
    pods = make_pods(2, labels={"app": "a"}, pod_anti_affinity=(near(ZONE, app="a"),))
    cloud = make_cloud(make_fleet(fleet, target))
    made = plan(make_snapshot(*pods, cloud=cloud), make_settings(fleet))
    assert len(made.placements) == 2
    assert max(Counter(places(made)).values()) == 1


@pytest.mark.parametrize("target", [0, 1, 2, 3])
def test_more_replicas_than_zones_ask_for_a_node_per_zone_and_no_more(target: int) -> None:
    """The target would climb with every cycle until the first node joins."""
    fleet = make_fleet_settings(zones=ZONES)
    pods = make_pods(3, labels={"app": "a"}, pod_anti_affinity=(near(ZONE, app="a"),))
    cloud = make_cloud(make_fleet(fleet, target))
    made = plan(make_snapshot(*pods, cloud=cloud), make_settings(fleet))
    assert made.fleets[0].target == max(target, 2)
    assert len(made.unplaceable) == 1


@pytest.mark.parametrize("target", [0, 2])
def test_zonal_anti_affinity_to_another_app_never_shares_one_new_node(target: int) -> None:
    """Two apps that exclude each other would be bought one node and one of them keep waiting."""
    fleet = make_fleet_settings(zones=ZONES)
    a = make_pod("a", labels={"app": "a"}, pod_anti_affinity=(near(ZONE, app="b"),))
    b = make_pod("b", labels={"app": "b"})
    cloud = make_cloud(make_fleet(fleet, target))
    made = plan(make_snapshot(a, b, cloud=cloud), make_settings(fleet))
    assert max(Counter(places(made)).values()) == 1


def test_many_pods_that_one_pod_avoids_still_share_nodes() -> None:
    """One pod with anti-affinity to a large app once bought a node per replica of that app."""
    crowd = make_pods(20, "crowd", cpu="100m", memory="100Mi", labels={"app": "b"})
    loner = make_pod("loner", cpu="100m", pod_anti_affinity=(near(HOSTNAME, app="b"),))
    made = plan(make_snapshot(*crowd, loner), make_settings(make_fleet_settings()))
    assert made.fleets[0].target == 2
    assert made.unplaceable == ()


def test_many_pods_that_one_pod_spreads_among_still_share_nodes() -> None:
    """One pod with a spread over a large app once bought a node per replica of that app."""
    crowd = make_pods(20, "crowd", cpu="100m", memory="100Mi", labels={"app": "b"})
    one = make_pod(
        "one", cpu="100m", labels={"app": "b"}, topology_spread=(spread(HOSTNAME, app="b"),)
    )
    made = plan(make_snapshot(*crowd, one), make_settings(make_fleet_settings()))
    assert made.fleets[0].target <= 2
    assert made.unplaceable == ()


def test_pods_that_avoid_themselves_get_a_node_each() -> None:
    """Replicas of a quorum would share a node."""
    pods = make_pods(3, labels={"app": "a"}, pod_anti_affinity=(near(HOSTNAME, app="a"),))
    made = plan(make_snapshot(*pods), make_settings(make_fleet_settings()))
    assert sorted(p.new_node for p in made.placements if p.new_node is not None) == [0, 1, 2]


def test_running_pods_anti_affinity_keeps_newcomers_off_its_node() -> None:
    """The symmetric half of anti-affinity would be forgotten."""
    fleet = make_fleet_settings()
    guard = make_pod("guard", node="n", pod_anti_affinity=(near(HOSTNAME, app="b"),))
    made = plan(
        make_snapshot(make_node("n", fleet), guard, make_pod("b", labels={"app": "b"})),
        make_settings(fleet),
    )
    assert places(made) == [(None, "primary-small", None, 0)]


def test_large_pod_joins_the_small_pod_that_it_wants_to_be_near() -> None:
    """Served in order of size, the large pod would find nobody to be near."""
    large = make_pod("large", cpu=2, labels={"app": "a"}, pod_affinity=(near(HOSTNAME, app="b"),))
    small = make_pod("small", cpu="100m", labels={"app": "b"})
    made = plan(make_snapshot(large, small), make_settings(make_fleet_settings()))
    assert made.fleets[0].target == 1
    assert made.unplaceable == ()


SIZES = (
    make_fleet_settings("little", cpu=4, price="0.2"),
    make_fleet_settings("large", cpu=16, price="0.62"),
)


def near_by_node(name: str, cpu: str, to: str) -> Pod:
    """A pod that must share a node with one of another app."""
    return make_pod(name, cpu=cpu, labels={"app": name}, pod_affinity=(near(HOSTNAME, app=to),))


@pytest.mark.parametrize(
    "pods",
    [
        (make_pod("a", cpu="250m", labels={"app": "a"}), near_by_node("b", "3800m", "a")),
        (
            make_pod("a", cpu="1", labels={"app": "a"}),
            near_by_node("b", "2", "a"),
            near_by_node("c", "3", "b"),
        ),
    ],
)
def test_first_pod_gets_a_node_that_takes_those_that_must_be_with_it(
    pods: tuple[Pod, ...],
) -> None:
    """It got the cheapest node, and the others waited for room there for ever."""
    others = make_pods(3, "o", cpu="2")
    for objects in (pods, (*others, *reversed(pods))):
        made = plan(make_snapshot(*objects), make_settings(*SIZES))
        assert made.unplaceable == ()
        assert {(f.fleet, f.target) for f in made.fleets if f.target} == {("primary-large", 1)}
        assert len(set(places(made))) == 1


def test_pod_whose_followers_no_node_takes_gets_the_cheapest_one() -> None:
    """A larger node would help nobody."""
    pods = (make_pod("a", cpu="250m", labels={"app": "a"}), near_by_node("b", "15900m", "a"))
    made = plan(make_snapshot(*pods), make_settings(*SIZES))
    assert {(f.fleet, f.target) for f in made.fleets if f.target} == {("primary-little", 1)}
    assert [u.pod.name for u in made.unplaceable] == ["b"]


@pytest.mark.parametrize("target", [0, 2])
def test_zonal_affinity_shares_a_node_where_the_zone_is_open(target: int) -> None:
    """Pods that must be in one zone would be promised two nodes that may be in different ones."""
    fleet = make_fleet_settings(zones=ZONES)
    pods = make_pods(4, cpu="1500m", labels={"app": "a"}, pod_affinity=(near(ZONE, app="a"),))
    made = plan(
        make_snapshot(*pods, cloud=make_cloud(make_fleet(fleet, target))), make_settings(fleet)
    )
    assert len(set(places(made))) == 1
    assert [u.reasons[0].code for u in made.unplaceable] == ["zone", "zone"]


def test_zonal_affinity_uses_many_nodes_of_a_fleet_in_one_zone() -> None:
    """The advice to give a fleet a `zone` would not help."""
    fleet = make_fleet_settings(zone=ZONES[0])
    pods = make_pods(4, cpu="1500m", labels={"app": "a"}, pod_affinity=(near(ZONE, app="a"),))
    made = plan(make_snapshot(*pods), make_settings(fleet))
    assert made.fleets[0].target == 2
    assert made.unplaceable == ()


EVEN: dict[str, Any] = {"labels": {"app": "w"}, "topology_spread": (spread(HOSTNAME, app="w"),)}


def beside_full_nodes(on_each: int) -> Plan:
    """The plan for six pods that are spread by node, beside four full nodes with some of them."""
    fleet = make_fleet_settings("s", cpu=4, price="0.2", over_subscription=0.0)
    nodes = [make_node(f"n{i}", fleet) for i in range(4)]
    old = [
        make_pod(f"old-{n.name}-{i}", node=n.name, cpu="1300m", **EVEN)
        for n in nodes
        for i in range(on_each)
    ]
    full = [make_pod(f"full-{n.name}", node=n.name, cpu=f"{39 - 13 * on_each}00m") for n in nodes]
    pods = make_pods(6, "w", cpu="1300m", **EVEN)
    return plan(make_snapshot(*pods, *nodes, *old, *full), make_settings(fleet))


def test_spread_by_node_fills_new_nodes_as_far_as_those_there_are() -> None:
    """Each pod got a node of its own, beside nodes with three each."""
    made = beside_full_nodes(3)
    assert made.unplaceable == ()
    assert sorted(Counter(places(made)).values()) == [3, 3]


def test_spread_by_node_counts_from_nodes_without_pods() -> None:
    """Two pods on a new node would exceed the skew against the nodes that have none."""
    made = beside_full_nodes(0)
    assert made.unplaceable == ()
    assert set(Counter(places(made)).values()) == {1}


TWO_SPREADS = (spread(ZONE, app="a"), spread(HOSTNAME, app="a"))
IN_THIS_REGION = near("topology.kubernetes.io/region", app="b")


@pytest.mark.parametrize("draining", [False, True])
@pytest.mark.parametrize("affinity", [(), (IN_THIS_REGION,)])
def test_spreads_over_zones_and_over_nodes_fill_the_nodes_that_are_there(
    *, draining: bool, affinity: tuple[PodAffinityTerm, ...]
) -> None:
    """Each node got maxSkew pods: nodes were bought for the rest, lower priorities had the room."""
    fleets = [make_fleet_settings("large", cpu=8, memory="64Gi", zone=zone) for zone in ZONES]
    nodes = [
        make_node(zone, fleet, zone=zone, draining=draining)
        for zone, fleet in zip(ZONES, fleets, strict=True)
    ]
    rules: dict[str, Any] = {"topology_spread": TWO_SPREADS, "pod_affinity": affinity}
    high = make_pods(8, "high", cpu=1, priority=100, labels={"app": "a"}, **rules)
    low = make_pods(6, "low", cpu=1)
    other = make_pod("other", cpu="100m", node=ZONES[0], labels={"app": "b"})
    cloud = make_cloud(*(make_fleet(fleet, 1) for fleet in fleets))
    made = plan(make_snapshot(*nodes, *high, *low, other, cloud=cloud), make_settings(*fleets))
    assert made.unplaceable == ()
    at = {p.pod.name: p.node for p in made.placements}
    assert Counter(at[pod.key.name] for pod in high) == dict.fromkeys(ZONES, 4)
    assert bought(made) == 0


def test_spreads_over_zones_and_over_nodes_fill_nodes_that_another_sector_bought() -> None:
    """Each of them got maxSkew pods, and nodes were bought for the others."""
    first = make_fleet_settings("large", "one", cpu=8, memory="64Gi", price="0.60")
    second = make_fleet_settings("small", "two", cpu=4, memory="64Gi", price="0.30")
    big = make_pods(2, "big", cpu=5, sector="one", priority=10)
    small = make_pods(
        6,
        "small",
        cpu=1,
        labels={"app": "a"},
        node_affinity=requiring("sector", "In", "one", "two"),
        topology_spread=TWO_SPREADS,
    )
    made = plan(make_snapshot(*big, *small), make_settings(first, second))
    assert made.unplaceable == ()
    assert bought(made) == 2
