"""Spreads by hostname, whose new nodes fill each other evenly."""

from typing import Any

import pytest

from reconciler.model.cluster import Node, Pod, Taint
from reconciler.planner.planner import plan
from tests.builders import (
    HOSTNAME,
    ZONE,
    ago,
    make_fleet_settings,
    make_node,
    make_pods,
    make_settings,
    make_snapshot,
    spread,
)
from tests.unit.planner.placed import bought

EVEN: dict[str, Any] = {"labels": {"app": "q"}, "topology_spread": (spread(HOSTNAME, app="q"),)}


@pytest.mark.parametrize("startup_taint", [False, True])
def test_joining_nodes_are_not_bought_again_for_a_spread_by_hostname(startup_taint: bool) -> None:
    """The nodes of the first plan have registered and are not Ready yet; nothing else changed.

    kube-scheduler puts all pods on them once they are Ready .
    """
    small = make_fleet_settings(cpu=2, memory="8Gi")
    old: list[Node | Pod] = [
        make_node("old", small),
        *make_pods(4, "running", node="old", cpu="500m", memory="50Mi", **EVEN),
    ]
    waiting = make_pods(20, "waiting", cpu="500m", memory="50Mi", **EVEN)
    first = plan(make_snapshot(*old, *waiting), make_settings(small))
    assert bought(first) == 5
    assert not first.unplaceable
    state: dict[str, Any] = {"ready": False, "ready_changed_at": ago(30)}
    if startup_taint:
        cilium = Taint(key="node.cilium.io/agent-not-ready", effect="NoSchedule")
        state = {"taints": (cilium,)}
    joining = [make_node(f"new-{i}", small, created_at=ago(40), **state) for i in range(5)]
    again = plan(make_snapshot(*old, *joining, *waiting), make_settings(small))
    assert bought(again) == 0


def test_spread_by_hostname_needs_no_node_per_pod_from_nothing() -> None:
    """With one empty node there, seven more were bought for 30 pods; with none, 30 were."""
    small = make_fleet_settings(cpu=2, memory="8Gi")
    pods = make_pods(30, cpu="500m", memory="50Mi", **EVEN)
    beside = bought(plan(make_snapshot(make_node("empty", small), *pods), make_settings(small)))
    assert beside == 7
    assert bought(plan(make_snapshot(*pods), make_settings(small))) <= beside + 1


@pytest.mark.parametrize("count", [20, 60, 150, 777])
def test_equal_pods_of_a_spread_by_hostname_cost_no_more_than_without_it(count: int) -> None:
    """Nodes were bought for one pod each, and others were left half empty: up to twice the cost."""
    small = make_fleet_settings("small", cpu=2, memory="16Gi", price="0.063")
    large = make_fleet_settings("large", cpu=16, memory="128Gi", price="0.495")
    settings = make_settings(small, large)
    plain = plan(make_snapshot(*make_pods(count, cpu="100m", memory="4Gi")), settings)
    even = make_pods(count, cpu="100m", memory="4Gi", **EVEN)
    spread_out = plan(make_snapshot(*even), settings)
    assert not spread_out.unplaceable
    assert spread_out.cost.hourly_usd_after <= 1.1 * plain.cost.hourly_usd_after


def test_more_than_64_pods_of_a_spread_by_hostname_share_a_node() -> None:
    """Only 64 pods of a spread were put on one node: the others got nodes of their own."""
    large = make_fleet_settings(cpu=40, memory="160Gi", pods=234)
    pods = make_pods(150, cpu="250m", memory="256Mi", **EVEN)
    assert bought(plan(make_snapshot(*pods), make_settings(large))) == 1


def test_spread_by_zone_and_by_hostname_from_nothing_fills_its_nodes() -> None:
    """Each zone has as many nodes as its share of the pods needs, not one for each pod."""
    zones = ("us-west-2a", "us-west-2b", "us-west-2c")
    fleets = [
        make_fleet_settings(f"x{n}", zone=z, cpu=2 * 2**n, memory=f"{8 * 2**n}Gi", price=p)
        for z in zones
        for n, p in enumerate(("0.063", "0.125", "0.248"))
    ]
    request: dict[str, Any] = {"cpu": "500m", "memory": "512Mi", "labels": {"app": "q"}}
    plain = plan(make_snapshot(*make_pods(60, **request)), make_settings(*fleets))
    rules = (spread(ZONE, app="q"), spread(HOSTNAME, app="q"))
    even = make_pods(60, topology_spread=rules, **request)
    planned = plan(make_snapshot(*even), make_settings(*fleets))
    assert not planned.unplaceable
    assert planned.cost.hourly_usd_after <= 1.1 * plain.cost.hourly_usd_after


def test_node_of_somebody_else_that_is_joining_counts_for_a_spread_by_hostname() -> None:
    """No launching node stands for it, and kube-scheduler counts it while it is empty."""
    small = make_fleet_settings(cpu=2, memory="8Gi")
    pods = make_pods(4, "running", node="old", cpu="500m", memory="50Mi", **EVEN)
    waiting = make_pods(6, "waiting", cpu="500m", memory="50Mi", **EVEN)

    def needed(age: float) -> int:
        foreign = make_node("foreign", ready=False, created_at=ago(age), ready_changed_at=ago(age))
        objects: list[Node | Pod] = [make_node("old", small), foreign, *pods, *waiting]
        return bought(plan(make_snapshot(*objects), make_settings(small)))

    assert needed(40) == needed(9000)


def test_equal_pods_of_a_spread_by_hostname_share_nodes_of_several_fleets_with_a_maximum() -> None:
    """No fleet may have as many nodes as all the pods need; a node for each would be too many."""
    fleets = [
        make_fleet_settings(size, cpu=4, memory="16Gi", max_capacity=2) for size in ("one", "two")
    ]
    pods = make_pods(28, cpu="500m", memory="512Mi", **EVEN)
    planned = plan(make_snapshot(*pods), make_settings(*fleets))
    assert bought(planned) == 4
    assert not planned.unplaceable
