"""Pods that must share a node or a zone, bought for with over-subscription."""

import pytest

from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    HOSTNAME,
    ZONE,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
)

SMALL = make_fleet_settings("small", cpu=4, memory="16Gi", price="0.10", over_subscription=0.2)
LARGE = make_fleet_settings("large", cpu=8, memory="32Gi", price="0.20", over_subscription=0.2)
HUGE = make_fleet_settings("huge", cpu=16, memory="64Gi", price="0.40", over_subscription=0.2)


def nodes_of(made: Plan) -> list[tuple[str, int | None]]:
    """The new nodes that pods go to."""
    return sorted({(str(p.fleet), p.new_node) for p in made.placements})


@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
@pytest.mark.parametrize(("count", "cpu"), [(2, "3500m"), (5, "1400m"), (8, "1")])
def test_group_gets_the_node_that_takes_it_by_its_requests(count: int, cpu: str, key: str) -> None:
    """Inflated it fits no node: it got a smaller one, and what found no room there waited."""
    pods = make_pods(count, cpu=cpu, labels={"app": "g"}, pod_affinity=(near(key, app="g"),))
    made = plan(make_snapshot(*pods), make_settings(SMALL, LARGE))
    assert made.unplaceable == ()
    assert nodes_of(made) == [("primary-large", 0)]
    assert made.cost.hourly_usd_lower_bound <= made.cost.hourly_usd_after


@pytest.mark.parametrize("first", ["3500m", "6"])
def test_pods_get_a_node_together_that_takes_them_by_their_requests(first: str) -> None:
    """The first one got a node that is too small for both, and the other one stayed pending."""
    rest = 7_500 - int(first[0]) * 1000
    pods = [
        make_pod("leader", cpu=first, labels={"app": "leader"}),
        make_pod("next", cpu=f"{rest}m", pod_affinity=(near(HOSTNAME, app="leader"),)),
    ]
    made = plan(make_snapshot(*pods), make_settings(SMALL, LARGE))
    assert made.unplaceable == ()
    assert nodes_of(made) == [("primary-large", 0)]


@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
def test_group_gets_the_node_that_takes_it_inflated_where_there_is_one(key: str) -> None:
    """Over-subscription is left out only where nothing takes the whole group with it."""
    pods = make_pods(2, cpu="3500m", labels={"app": "g"}, pod_affinity=(near(key, app="g"),))
    made = plan(make_snapshot(*pods), make_settings(SMALL, LARGE, HUGE))
    assert nodes_of(made) == [("primary-huge", 0)]


def test_leader_and_its_follower_get_a_node_together_where_one_takes_them_inflated() -> None:
    """Over-subscription is left out only where nothing takes both with it."""
    together = [
        make_pod("leader", cpu="3500m", labels={"app": "leader"}),
        make_pod("next", cpu="3500m", pod_affinity=(near(HOSTNAME, app="leader"),)),
    ]
    made = plan(make_snapshot(*together), make_settings(SMALL, LARGE, HUGE))
    assert made.unplaceable == ()


@pytest.mark.parametrize(
    ("count", "placed"),
    [
        pytest.param(9, 6, id="no node takes all"),
        pytest.param(6, 6, id="one takes all inflated"),
    ],
)
def test_group_of_a_zone_keeps_its_over_subscription_otherwise(count: int, placed: int) -> None:
    """A node that decides the zone of a larger group needs no more pods than it holds inflated."""
    pods = make_pods(count, cpu=1, labels={"app": "g"}, pod_affinity=(near(ZONE, app="g"),))
    made = plan(make_snapshot(*pods), make_settings(SMALL, LARGE))
    assert len(made.placements) == placed
    assert nodes_of(made) == [("primary-large", 0)]


def test_group_goes_to_a_fixed_zone_with_its_over_subscription_if_that_costs_less() -> None:
    """Where one fleet has a zone, nodes can follow each other there."""
    fixed = make_fleet_settings(
        "fixed", cpu=4, price="0.05", over_subscription=0.2, zone="us-west-2a"
    )
    pods = make_pods(2, cpu="3500m", labels={"app": "g"}, pod_affinity=(near(ZONE, app="g"),))
    made = plan(make_snapshot(*pods), make_settings(SMALL, LARGE, fixed))
    assert nodes_of(made) == [("primary-fixed-us-west-2a", 0), ("primary-fixed-us-west-2a", 1)]


def test_next_of_a_group_follow_into_the_zone_with_their_over_subscription() -> None:
    """Pods whose zone is known need not share a node."""
    node = make_node("n", LARGE, zone="us-west-2a")
    labels, together = {"app": "g"}, (near(ZONE, app="g"),)
    first = make_pod("first", node="n", cpu="7", labels=labels, pod_affinity=together)
    fixed = make_fleet_settings(
        "fixed", cpu=4, price="0.10", over_subscription=0.2, zone="us-west-2a"
    )
    pods = make_pods(2, cpu="2", labels=labels, pod_affinity=together)
    made = plan(make_snapshot(*pods, first, node), make_settings(fixed, LARGE))
    assert made.unplaceable == ()
    assert nodes_of(made) == [("primary-fixed-us-west-2a", 0), ("primary-fixed-us-west-2a", 1)]


def test_group_leaves_no_room_that_its_node_does_not_have_inflated() -> None:
    """A node that the group fills by inflated requests takes no other pod in the same plan."""
    pods = make_pods(2, cpu="3500m", labels={"app": "g"}, pod_affinity=(near(HOSTNAME, app="g"),))
    made = plan(make_snapshot(*pods, make_pod("other", cpu="500m")), make_settings(SMALL, LARGE))
    assert made.unplaceable == ()
    assert nodes_of(made) == [("primary-large", 0), ("primary-small", 0)]
