"""Which pods are served where limits do not allow nodes for all: those of the highest priority."""

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.model.plan import Plan
from reconciler.planner.capacity import buy
from reconciler.planner.capacity.problem.purchase import Purchase, PurchaseRequest
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, RaiseLimits
from tests.builders import (
    AWAY,
    HOME,
    HOSTNAME,
    ZONE,
    capacity_error,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    requiring,
    spread,
)
from tests.unit.planner.placed import bought

HIGH = 100
IN_A, IN_B = (requiring(ZONE, "In", f"us-west-2{zone}") for zone in "ab")
ONE_NODE = RaiseLimits(nodes_per_cycle=1)


def fleet(size: str, cpu: int, price: str, zone: str = "a", **changed: Any) -> FleetSettings:
    """A fleet in one zone."""
    return make_fleet_settings(size, cpu=cpu, price=price, zone=f"us-west-2{zone}", **changed)


def served(fleets: list[FleetSettings], *pods: Pod, **settings: Any) -> dict[str, int]:
    """How many pods of each name before the hyphen have a place."""
    return _served(plan(make_snapshot(*pods), make_settings(*fleets, **settings)))


def _served(made: Plan) -> dict[str, int]:
    return Counter(placed.pod.name.split("-")[0] for placed in made.placements)


def test_node_that_costs_more_than_all_the_money_is_not_bought_for_the_highest_priority() -> None:
    """Its pods waited for ever, while the money went to cheap nodes for lower priorities."""
    fleets = [fleet("m4", 4, "0.152"), fleet("m16", 16, "0.56")]
    low = make_pods(2, "low", cpu=3, node_selector={"size": "m4"})
    high = make_pod("high-0", cpu=2, priority=HIGH)
    found = served(fleets, high, *low, usd_per_hour_max=Decimal("0.40"))
    assert found == {"high": 1, "low": 1}


@pytest.mark.parametrize(
    "limit",
    [{"usd_per_hour_max": Decimal("0.25")}, {"raise_limits": ONE_NODE}],
    ids=["money", "nodes"],
)
def test_pods_of_lower_priority_do_not_decide_which_node_is_bought(limit: dict[str, Any]) -> None:
    """The only node came where most pods fit, and three of the highest priority waited."""
    fleets = [fleet("m4", 4, "0.2", zone) for zone in "ab"]
    pods = [
        make_pod("there-0", cpu=1, priority=HIGH, node_affinity=IN_A),
        *make_pods(3, "here", cpu=1, priority=HIGH, node_affinity=IN_B),
        *make_pods(6, "low", cpu="500m", node_affinity=IN_A),
    ]
    assert served(fleets, *pods, **limit) == {"here": 3}


def test_the_only_node_of_a_plan_takes_the_highest_priority_first() -> None:
    """It held one pod of high priority and three low ones: cheapest where all nodes are bought."""
    fleets = [make_fleet_settings("m2", cpu=2, pods=4)]
    high = make_pods(3, "high", cpu=1, priority=HIGH)
    low = make_pods(3, "low", cpu="250m")
    assert served(fleets, *high, *low, raise_limits=ONE_NODE) == {"high": 2}


def test_only_node_of_a_plan_takes_all_of_the_highest_priority_that_fit() -> None:
    """It was packed for two nodes, a pod of each priority on both."""
    fleets = [fleet("m2", 2, "0.14"), fleet("m8", 8, "0.37")]
    pods = [*make_pods(2, "high", cpu=2, priority=HIGH), *make_pods(2, "low", cpu=6)]
    assert served(fleets, *pods, raise_limits=ONE_NODE) == {"high": 2}


def test_pod_that_goes_singly_comes_before_lower_priorities() -> None:
    """It waited for ever, as pods that others need not be near had all the money."""
    fleets = [fleet("m2", 2, "0.10"), fleet("m4", 4, "0.20")]
    high = make_pod(
        "high-0",
        cpu=4,
        priority=HIGH,
        labels={"app": "x"},
        pod_affinity=(near(HOSTNAME, app="x"),),
    )
    low = make_pods(2, "low", cpu=2)
    found = served(fleets, high, *low, usd_per_hour_max=Decimal("0.25"))
    assert found == {"high": 1}


def test_spread_by_hostname_fills_the_last_node_before_lower_priorities() -> None:
    """Packing caps its pods per node; what was left came after pods of lower priority."""
    rule = (spread(HOSTNAME, app="a"),)
    high = make_pods(4, "high", cpu=2, priority=HIGH, labels={"app": "a"}, topology_spread=rule)
    found = served([fleet("m8", 8, "0.4", max_capacity=1)], *high, make_pod("low-0", cpu=4))
    assert found == {"high": 4}


def test_zone_is_kept_for_the_highest_priority_that_goes_singly() -> None:
    """A pod of low priority had the zone from which it keeps others out."""
    high = make_pod(
        "high-0",
        cpu=1,
        priority=HIGH,
        labels={"app": "x"},
        pod_affinity=(near(HOSTNAME, app="x"),),
        pod_anti_affinity=(near(ZONE, app="y"),),
    )
    low = make_pod("low-0", cpu=1, labels={"app": "y"})
    assert served([fleet("m4", 4, "0.2")], high, low) == {"high": 1}


def test_lower_priorities_use_the_room_beside_higher_ones() -> None:
    """The plan would buy a node for them, though the one of the higher priority holds them too."""
    rule = (spread(HOSTNAME, app="a"),)
    high = make_pods(3, "high", cpu=2, priority=HIGH, labels={"app": "a"}, topology_spread=rule)
    low = [make_pod("low-0", cpu=4), *make_pods(2, "small", cpu=1)]
    fleets = [fleet("m8", 8, "0.4", max_capacity=1)]
    made = plan(make_snapshot(*high, *low), make_settings(*fleets))
    assert _served(made) == {"high": 3, "small": 2}
    assert bought(made) == 1


def test_room_beside_higher_priorities_goes_to_the_next_one_first() -> None:
    """Pods that go singly waited there, while the lowest priority took the last places."""
    fleets = [make_fleet_settings("m8", cpu=8, pods=4, price="0.4")]
    high = make_pods(2, "high", cpu=5, priority=HIGH)
    middle = make_pods(
        3,
        "middle",
        cpu=1,
        priority=50,
        labels={"app": "x"},
        pod_affinity=(near(HOSTNAME, app="x"),),
    )
    low = make_pods(3, "low", cpu="100m")
    found = served(fleets, *high, *middle, *low, usd_per_hour_max=Decimal("0.40"))
    assert found == {"high": 1, "middle": 3}


def test_what_must_be_near_a_lower_priority_is_served_after_it() -> None:
    """Bought for first it has no neighbour yet; left out for good, it would wait for ever."""
    leader = make_pod("leader-0", cpu=2, labels={"app": "db"})
    follower = make_pod("follower-0", cpu=1, priority=50, pod_affinity=(near(HOSTNAME, app="db"),))
    high = make_pod(
        "high-0",
        cpu=4,
        priority=HIGH,
        labels={"app": "x"},
        pod_affinity=(near(HOSTNAME, app="x"),),
    )
    fleets = [fleet("m4", 4, "0.2")]
    pods = [leader, follower, high, *make_pods(8, "low", cpu=4)]
    found = served(fleets, *pods, usd_per_hour_max=Decimal("0.40"))
    assert found == {"high": 1, "leader": 1, "follower": 1}


def test_what_must_be_near_a_lower_priority_is_served_in_the_plan_that_buys_for_it() -> None:
    """Where each priority is bought for on its own, it was asked about before that one only."""
    regions: dict[str, Any] = {"regions": (HOME, AWAY), "zones": ("us-west-2a", "us-east-1a")}
    large = make_fleet_settings("large", cpu=8, memory="32Gi", price="0.48", **regions)
    follower = make_pod("follower-0", cpu=1, priority=HIGH, pod_affinity=(near(ZONE, app="db"),))
    leader = make_pod("leader-0", cpu=1, labels={"app": "db"})
    failing = make_fleet(large, launch_errors=(capacity_error(60),))
    cloud = make_cloud(failing, make_fleet(large, region=AWAY))
    settings = make_settings(large, regions=(HOME, AWAY), usd_per_hour_max=Decimal(5))
    made = plan(make_snapshot(follower, leader, cloud=cloud), settings)
    assert _served(made) == {"follower": 1, "leader": 1}
    assert bought(made) == 1


def test_many_priorities_are_served_from_the_highest_down() -> None:
    """Each one loses its node to others below it while only two are distinguished."""
    single = [
        make_pod(
            f"high{n}-0",
            namespace=f"ns{n}",
            cpu=4,
            priority=100 + 2 * n,
            labels={"app": "x"},
            pod_affinity=(near(HOSTNAME, app="x"),),
        )
        for n in range(6)
    ]
    plain = [make_pod(f"low{n}-0", cpu=4, priority=101 + 2 * n) for n in range(6)]
    found = served([fleet("m4", 4, "0.2", max_capacity=5)], *single, *plain)
    assert found == {"low3": 1, "high4": 1, "low4": 1, "high5": 1, "low5": 1}


def test_many_classes_of_pods_are_split_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each split searches nodes for almost all of them again: a plan took twenty times as long."""
    monkeypatch.setattr(buy, "CLASSES_MAX", 100)
    asked: list[int] = []

    def counted(sim: Simulation, request: PurchaseRequest) -> Purchase:
        asked.append(len(request.wants))
        return at_once(sim, request)

    at_once = buy._at_once
    monkeypatch.setattr(buy, "_at_once", counted)
    pods = [
        make_pod(
            f"high{n}",
            namespace=f"ns{n}",
            cpu=4,
            priority=2 * n + 1,
            labels={"app": "x"},
            pod_affinity=(near(HOSTNAME, app="x"),),
        )
        for n in range(20)
    ]
    pods += [make_pod(f"low{n}", cpu=4, priority=2 * n) for n in range(20)]
    served([fleet("m4", 4, "0.2", max_capacity=19)], *pods)
    assert buy.SPLITS_LEAST < len(asked) <= 1 + 2 * buy.SPLITS_LEAST
