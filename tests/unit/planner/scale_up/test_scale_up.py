"""Where demand goes (docs/scale-up.md)."""

from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.actions import DRAIN_STARTED, AnnotateNode, SetCapacity, UntaintNode
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.planner.planner import plan
from tests.builders import (
    HOME,
    ZONE,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.placed import places, raises

# ---- nodes that exist, then capacity on its way, then new nodes ---------------------------


def test_pods_use_existing_nodes_then_launching_ones_then_new_ones() -> None:
    """Nodes would be bought beside nodes that are empty or on their way."""
    fleet = make_fleet_settings(cpu=4)
    node = make_node("n", fleet)
    cloud = make_cloud(make_fleet(fleet, 2))
    made = plan(make_snapshot(node, *make_pods(3, cpu=4), cloud=cloud), make_settings(fleet))
    assert sorted(places(made).values(), key=str) == [
        ("n",),
        ("primary-small", 0, None),
        ("primary-small", None, 0),
    ]
    assert raises(made) == {("primary-small", HOME): 3}
    assert [a.because for a in made.actions if isinstance(a, SetCapacity)] == [
        "1 pending pod needs 1 more node"
    ]


@pytest.mark.parametrize(
    "changed",
    [{"ready": False}, {"unschedulable": True}, {"deleting": True}, {"unreadable": True}],
)
def test_node_that_takes_no_pods_is_no_destination(changed: dict[str, Any]) -> None:
    """Pods would be promised a node that the scheduler never uses."""
    fleet = make_fleet_settings()
    made = plan(make_snapshot(make_node("n", fleet, **changed), make_pod()), make_settings(fleet))
    assert places(made) == {"pod": ("primary-small", None, 0)}


def test_young_node_that_is_not_ready_counts_as_launching() -> None:
    """A node would be bought for every pod while the first one boots."""
    fleet = make_fleet_settings()
    booting = make_node("n", fleet, ready=False, created_at=ago(60))
    made = plan(make_snapshot(booting, make_pod()), make_settings(fleet))
    assert places(made) == {"pod": ("primary-small", 0, None)}
    assert (made.fleets[0].joined, made.fleets[0].launching) == (0, 1)


def test_instance_shutting_down_is_no_destination_and_no_capacity() -> None:
    """Pods would be promised a node that EC2 is taking away."""
    fleet = make_fleet_settings()
    node, live = make_node("n", fleet), make_fleet(fleet, 0)
    cloud = make_cloud(live, instances=[make_instance(node, live, state="shutting-down")])
    made = plan(make_snapshot(node, make_pod(), cloud=cloud), make_settings(fleet))
    assert places(made) == {"pod": ("primary-small", None, 0)}
    assert made.fleets[0].joined == 0


def test_fleet_holding_more_than_its_target_asks_for_joined_plus_needed() -> None:
    """EC2 would see its target met already and launch nothing."""
    fleet = make_fleet_settings(cpu=4)
    nodes = [make_node(f"n{i}", fleet, unschedulable=True) for i in range(3)]
    cloud = make_cloud(make_fleet(fleet, 1))
    made = plan(make_snapshot(*nodes, make_pod(), cloud=cloud), make_settings(fleet))
    assert raises(made) == {("primary-small", HOME): 4}


def test_nominated_node_is_taken_by_its_pod() -> None:
    """Another pod would be promised the room that preemption is freeing."""
    fleet = make_fleet_settings(cpu=4)
    waits = make_pod("nominated", cpu=3, nominated_node_name=NodeName("n"))
    victim = make_pod("victim", node="n", cpu=4, deleting=True)
    made = plan(
        make_snapshot(make_node("n", fleet), waits, victim, make_pod("other", cpu=3)),
        make_settings(fleet),
    )
    assert places(made)["nominated"] == ("n",)
    assert places(made)["other"] == ("primary-small", None, 0)


@pytest.mark.parametrize(
    "changed", [{"ready": False}, {"unschedulable": True}, {"deleting": True}, {"draining": True}]
)
def test_nomination_for_a_node_that_takes_nobody_is_void(changed: dict[str, Any]) -> None:
    """The pod would wait for a node that is gone, and no capacity be asked for."""
    fleet = make_fleet_settings(cpu=4)
    full = make_pod("full", node="n", cpu=4)
    pod = make_pod(cpu=4, nominated_node_name=NodeName("n"))
    made = plan(make_snapshot(make_node("n", fleet, **changed), full, pod), make_settings(fleet))
    assert places(made) == {"pod": ("primary-small", None, 0)}


def test_room_held_by_running_balloons_is_free_for_real_pods() -> None:
    """Headroom would be bought twice: the balloon is there to be preempted."""
    fleet = make_fleet_settings(cpu=4)
    balloon = make_pod("balloon", node="n", cpu=4, priority=-10)
    made = plan(
        make_snapshot(make_node("n", fleet), balloon, make_pod(cpu=4)), make_settings(fleet)
    )
    assert places(made) == {"pod": ("n",)}
    assert raises(made) == {}


def test_waiting_balloon_does_not_take_a_running_balloons_room() -> None:
    """A second headroom pod would be promised the first one's room and make none."""
    fleet = make_fleet_settings(cpu=4)
    runs = make_pod("runs", node="n", cpu=4, priority=-10)
    waits = make_pod("waits", cpu=4, priority=-10)
    made = plan(make_snapshot(make_node("n", fleet), runs, waits), make_settings(fleet))
    assert places(made) == {"waits": ("primary-small", None, 0)}


def test_waiting_balloon_makes_headroom() -> None:
    """Pause pods of low priority would get no node and make no headroom."""
    fleet = make_fleet_settings(cpu=4)
    full = make_pod("full", node="n", cpu=4)
    made = plan(
        make_snapshot(make_node("n", fleet), full, make_pod("balloon", cpu=4, priority=-10)),
        make_settings(fleet),
    )
    assert raises(made) == {("primary-small", HOME): 2}


def test_draining_node_that_is_needed_is_taken_back_before_anything_is_launched() -> None:
    """A node would be ended while its replacement is launched."""
    fleet = make_fleet_settings(cpu=4)
    node = make_node(
        "n", fleet, draining=True, annotations=FrozenMap({DRAIN_STARTED: "2026-01-31T11:59:00Z"})
    )
    made = plan(make_snapshot(node, make_pod(cpu=4)), make_settings(fleet))
    assert places(made) == {"pod": ("n",)}
    assert [type(a) for a in made.actions] == [UntaintNode, AnnotateNode, AnnotateNode]
    assert made.fleets[0].target == 1


def test_launching_node_goes_to_the_pod_that_it_was_bought_for() -> None:
    """Every cycle until it joins would buy another one, as a pod that fits elsewhere takes it."""
    zoned = make_fleet_settings("zoned", zone="us-west-2a", cpu=2)
    open_to_all = make_fleet_settings("open", cpu=2)
    pods = [make_pod("a", cpu=2), make_pod("b", cpu=2, node_selector={ZONE: "us-west-2a"})]
    cloud = make_cloud(make_fleet(zoned, 1), make_fleet(open_to_all, 1))
    made = plan(make_snapshot(*pods, cloud=cloud), make_settings(zoned, open_to_all))
    assert places(made) == {"a": ("primary-open", 0, None), "b": (zoned.name, 0, None)}
    assert raises(made) == {}


# ---- cost, inflation, expanders -----------------------------------------------------------


def test_cheapest_total_wins_over_cheapest_node() -> None:
    """Many small nodes would be bought where one large one costs less."""
    small = make_fleet_settings("small", cpu=2, memory="8Gi", price="0.10")
    large = make_fleet_settings("large", cpu=8, memory="32Gi", price="0.25")
    made = plan(make_snapshot(*make_pods(8, cpu=1)), make_settings(small, large))
    assert raises(made) == {("primary-large", HOME): 1}
    assert made.cost.hourly_usd_after == 0.25


def test_over_subscription_inflates_only_what_asks_for_new_nodes() -> None:
    """Pods would be kept off real nodes that have room."""
    fleet = make_fleet_settings(cpu=4, over_subscription=0.5)
    on_real = plan(make_snapshot(make_node("n", fleet), *make_pods(4, cpu=1)), make_settings(fleet))
    assert raises(on_real) == {}
    on_new = plan(make_snapshot(*make_pods(4, cpu=1)), make_settings(fleet))
    assert raises(on_new) == {("primary-small", HOME): 2}


def test_over_subscription_never_keeps_a_pod_off_a_node_that_it_fits_alone() -> None:
    """A pod of nearly a node's size would be unplaceable."""
    fleet = make_fleet_settings(cpu=4, over_subscription=0.5)
    made = plan(make_snapshot(make_pod(cpu="3500m", memory="15Gi")), make_settings(fleet))
    assert raises(made) == {("primary-small", HOME): 1}


EXPANDERS = [
    ("cost", {"large": {"price": "0.18"}}, "primary-large"),
    ("least-waste", {"large": {"price": "0.11"}}, "primary-small"),
    ("most-pods", {"small": {"max_capacity": 1}}, "primary-large"),
    ("priority", {"small": {"priority": 5}}, "primary-small"),
    ("priority", {"large": {"priority": 5}}, "primary-large"),
]


@pytest.mark.parametrize(("expander", "changed", "chosen"), EXPANDERS)
def test_expander_decides_which_fleet_grows(
    expander: str, changed: dict[str, dict[str, Any]], chosen: str
) -> None:
    """A configured preference would have no effect."""
    small = make_fleet_settings(
        "small", **{"cpu": 2, "memory": "8Gi", "price": "0.10", **changed.get("small", {})}
    )
    large = make_fleet_settings(
        "large", **{"cpu": 16, "memory": "64Gi", "price": "0.90", **changed.get("large", {})}
    )
    pods = make_pods(2, cpu="1900m", memory="7Gi")
    settings = make_settings(small, large, sectors={"primary": {"expander": expander}})
    assert {fleet for fleet, _ in raises(plan(make_snapshot(*pods), settings))} == {chosen}


def test_random_expander_is_seeded_by_the_snapshot() -> None:
    """The same plan made twice would buy two different fleets."""
    fleets = [make_fleet_settings(f"f{i}") for i in range(4)]
    settings = make_settings(*fleets, sectors={"primary": {"expander": "random"}})
    chosen = {
        count: {tuple(raises(plan(make_snapshot(*make_pods(count)), settings))) for _ in range(3)}
        for count in range(1, 9)
    }
    assert all(len(outcomes) == 1 for outcomes in chosen.values())
    assert len(set.union(*chosen.values())) > 1


def test_random_expander_does_not_read_the_order_of_the_pods() -> None:
    """Each list that the API server answers with would buy of another fleet."""
    fleets = [make_fleet_settings(f"f{i}") for i in range(4)]
    settings = make_settings(*fleets, sectors={"primary": {"expander": "random"}})
    for count in range(1, 9):
        running = [make_pod(cpu, cpu=cpu, node="full") for cpu in ("100m", "200m")]
        pods = [make_pod("a", cpu="100m"), *make_pods(count, "b", cpu="200m"), *running]
        full = make_node("full", unschedulable=True)
        ways = (raises(plan(make_snapshot(full, *each), settings)) for each in (pods, pods[::-1]))
        assert len({tuple(way.items()) for way in ways}) == 1


# ---- limits -------------------------------------------------------------------------------


def test_priorities_decide_who_waits_under_a_maximum() -> None:
    """Batch work would take the last node from what serves customers."""
    fleet = make_fleet_settings(cpu=4, max_capacity=1)
    pods = [make_pod("a-low", cpu=4), make_pod("z-high", cpu=4, priority=100)]
    made = plan(make_snapshot(*pods), make_settings(fleet))
    assert list(places(made)) == ["z-high"]
    assert [(u.pod.name, u.reasons[0].code) for u in made.unplaceable] == [
        ("a-low", "max-capacity")
    ]


def test_spending_limit_holds_back_raises_but_keeps_the_minimum() -> None:
    """A limit below the minima would shut the cluster down."""
    fleet = make_fleet_settings(cpu=4, price="0.10", min_capacity=2)
    settings = make_settings(fleet, usd_per_hour_max=Decimal("0.15"))
    made = plan(make_snapshot(*make_pods(3, cpu=4), cloud=make_cloud(make_fleet(fleet))), settings)
    assert raises(made) == {("primary-small", HOME): 2}
    assert [u.reasons[0].code for u in made.unplaceable] == ["max-cost"]


def test_sectors_spending_limit_holds_only_for_the_sector() -> None:
    """One sector's limit would starve another."""
    one, two = (
        make_fleet_settings("small", "one", cpu=4),
        make_fleet_settings("small", "two", cpu=4),
    )
    settings = make_settings(one, two, sectors={"one": {"usd_per_hour_max": Decimal("0.10")}})
    pods = [*make_pods(2, "a", cpu=4, sector="one"), *make_pods(2, "b", cpu=4, sector="two")]
    made = plan(make_snapshot(*pods), settings)
    assert raises(made) == {("one-small", HOME): 1, ("two-small", HOME): 2}
    assert [u.reasons[0].code for u in made.unplaceable] == ["max-cost"]


def test_group_max_size_limits_like_max_capacity() -> None:
    """SetDesiredCapacity above MaxSize is refused, cycle after cycle."""
    fleet = make_fleet_settings(cpu=4, provider="asg")
    cloud = make_cloud(make_fleet(fleet, 1, max_size=2))
    made = plan(make_snapshot(*make_pods(4, cpu=4), cloud=cloud), make_settings(fleet))
    assert raises(made) == {("primary-small", HOME): 2}
    assert {u.reasons[0].code for u in made.unplaceable} == {"max-capacity"}
