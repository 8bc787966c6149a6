"""Pods that must share a node, bought for with over-subscription."""

import pytest

from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    HOSTNAME,
    make_fleet_settings,
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


@pytest.mark.parametrize(("count", "cpu"), [(2, "3500m"), (5, "1400m"), (8, "1")])
def test_group_gets_the_node_that_takes_it_by_its_requests(count: int, cpu: str) -> None:
    """Inflated it fits no node: it got a smaller one, and what found no room there waited."""
    pods = make_pods(count, cpu=cpu, labels={"app": "g"}, pod_affinity=(near(HOSTNAME, app="g"),))
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


def test_group_gets_the_node_that_takes_it_inflated_where_there_is_one() -> None:
    """Over-subscription is left out only where nothing takes the whole group with it."""
    pods = make_pods(2, cpu="3500m", labels={"app": "g"}, pod_affinity=(near(HOSTNAME, app="g"),))
    made = plan(make_snapshot(*pods), make_settings(SMALL, LARGE, HUGE))
    assert nodes_of(made) == [("primary-huge", 0)]
    together = [
        make_pod("leader", cpu="3500m", labels={"app": "leader"}),
        make_pod("next", cpu="3500m", pod_affinity=(near(HOSTNAME, app="leader"),)),
    ]
    made = plan(make_snapshot(*together), make_settings(SMALL, LARGE, HUGE))
    assert made.unplaceable == ()


def test_group_leaves_no_room_that_its_node_does_not_have_inflated() -> None:
    """A node that the group fills by inflated requests takes no other pod in the same plan."""
    pods = make_pods(2, cpu="3500m", labels={"app": "g"}, pod_affinity=(near(HOSTNAME, app="g"),))
    made = plan(make_snapshot(*pods, make_pod("other", cpu="500m")), make_settings(SMALL, LARGE))
    assert made.unplaceable == ()
    assert nodes_of(made) == [("primary-large", 0), ("primary-small", 0)]
