"""Which pods are served where limits do not allow nodes for all: those of the highest priority."""

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, RaiseLimits
from tests.builders import (
    ZONE,
    make_fleet_settings,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    requiring,
)

HIGH = 100
IN_A, IN_B = (requiring(ZONE, "In", f"us-west-2{zone}") for zone in "ab")
ONE_NODE = RaiseLimits(nodes_per_cycle=1)


def fleet(size: str, cpu: int, price: str, zone: str = "a", **changed: Any) -> FleetSettings:
    """A fleet in one zone."""
    return make_fleet_settings(size, cpu=cpu, price=price, zone=f"us-west-2{zone}", **changed)


def served(fleets: list[FleetSettings], *pods: Pod, **settings: Any) -> dict[str, int]:
    """How many pods of each name before the hyphen have a place."""
    made = plan(make_snapshot(*pods), make_settings(*fleets, **settings))
    return Counter(placed.pod.name.split("-")[0] for placed in made.placements)


def test_node_that_is_dearer_than_all_the_money_is_not_bought_for_the_highest_priority() -> None:
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
