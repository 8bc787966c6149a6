"""Nodes that are replaced for what they are: their age, or what EC2 announces for later."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import (
    DRAINING_TAINT,
    INTERRUPTION,
    REPLACEMENT_ASKED,
    AnnotateNode,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
)
from reconciler.model.cluster import Node, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import DisruptionBudget
from reconciler.planner.nodes.interruptions import read_notice
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.builders import ago, make_cloud_of, make_fleet, make_node, make_settings
from tests.unit.planner.disruption.interrupted_nodes import targets
from tests.unit.planner.disruption.queued_notices import results, seen, spot, written
from tests.unit.planner.disruption.scale_in.scene import (
    full,
    kept,
    make_scene_fleet,
    on,
    planned,
    told,
    unneeded,
)
from tests.unit.planner.placed import drained

DAY = 86_400.0
FLEET = make_scene_fleet(expire_after_seconds=DAY)
PLAIN = make_scene_fleet()


def aged(name: str, days: float, **changed: Any) -> Node:
    """A node of a certain age."""
    return make_node(name, FLEET, created_at=ago(days * DAY), **changed)


def announced(name: str, text: str) -> Node:
    """A node with this notice on it."""
    return make_node(name, PLAIN, annotations=FrozenMap({INTERRUPTION: text}))


def rebalance(name: str) -> Node:
    """A node that EC2 recommends to leave."""
    return announced(name, f"rebalance-recommendation/{rfc3339(ago(60))}")


def scheduled(name: str, in_seconds: float) -> Node:
    """A node whose instance EC2 will change."""
    return announced(name, f"scheduled-change/{rfc3339(ago(-in_seconds))}")


def asked_of(made: Plan) -> list[AnnotateNode]:
    """Where it is noted that a node was asked for in the place of another."""
    return [a for a in made.actions if isinstance(a, AnnotateNode) and a.key == REPLACEMENT_ASKED]


def policies(made: Plan) -> set[str]:
    """The policies of all actions."""
    return {action.policy for action in made.actions}


def test_expired_node_is_drained_where_its_pods_fit_elsewhere() -> None:
    """Nodes that live for months miss every security fix of their image."""
    made = planned(FLEET, aged("a", 2), aged("b", 0.5), on("a"), on("b"))
    assert drained(made) == ["a"]
    assert told(made, EvictPod) == ["on-a"]
    assert policies(made) == {"expiry"}
    (taint,) = [a.taint for a in made.actions if isinstance(a, TaintNode)]
    assert (taint.key, taint.value) == (DRAINING_TAINT, "expiry")
    because = next(a.because for a in made.actions if isinstance(a, TaintNode))
    assert "2d" in because
    assert "expire_after" in because


def test_expired_node_waits_for_the_node_in_its_place() -> None:
    """Its pods would wait for a launch: capacity first, then the drain."""
    made = planned(FLEET, aged("a", 2), aged("b", 0.5), full("a"), full("b"))
    assert targets(made) == [(2, 3)]
    assert drained(made) == []
    assert kept(made)["a"] == "replacement"
    assert [(a.node, a.policy) for a in asked_of(made)] == [("a", "expiry")]
    come = [aged("a", 2), aged("b", 0.5), aged("c", 0.01)]
    made = planned(FLEET, *come, full("a"), full("b"))
    assert drained(made) == ["a"]
    assert targets(made) == []


def test_next_plan_asks_for_no_second_node_while_the_first_one_launches() -> None:
    """Every plan of the boot would buy another one."""
    asked = FrozenMap({REPLACEMENT_ASKED: f"{rfc3339(ago(30))}"})
    nodes = [aged("a", 2, annotations=asked), aged("b", 0.5)]
    made = planned(FLEET, *nodes, full("a"), full("b"), target=3)
    assert targets(made) == []
    assert drained(made) == []


def test_drained_node_is_ended_with_its_part_of_the_target() -> None:
    """The target was raised for the node in its place."""
    a = aged("a", 2, taints=(Taint(key=DRAINING_TAINT, value="expiry", effect="NoSchedule"),))
    made = planned(FLEET, a, aged("b", 0.5), aged("c", 0.01), full("b"), full("c"))
    ends = [x for x in made.actions if isinstance(x, TerminateInstance)]
    assert [(x.node, x.decrement, x.policy) for x in ends] == [("a", True, "expiry")]


def test_one_node_goes_at_a_time_the_oldest_first() -> None:
    """A fleet that was made in one day expires in one day."""
    nodes = [aged(name, days) for name, days in [("a", 2), ("b", 3), ("c", 2.5), ("d", 0.1)]]
    made = planned(FLEET, *nodes, on("a"), on("b"), on("c"))
    assert drained(made) == ["b"]


def test_pods_never_move_onto_a_node_that_is_to_be_replaced_itself() -> None:
    """They would be moved again with the next one."""
    made = planned(FLEET, aged("a", 3), aged("b", 2), on("a"), on("b"))
    assert drained(made) == []
    assert targets(made) == [(2, 3)]


def test_fleet_at_its_minimum_gets_a_node_in_its_place_first() -> None:
    """It would keep its oldest nodes for good."""
    fleet = make_scene_fleet(expire_after_seconds=DAY, min_capacity=2)
    nodes = [
        replace(make_node(name, fleet), created_at=ago(days * DAY))
        for name, days in [("a", 2), ("b", 0.5)]
    ]
    made = planned(fleet, *nodes, on("a"), on("b"))
    assert targets(made) == [(2, 3)]
    assert kept(made)["a"] == "replacement"
    waiting = planned(fleet, *nodes, on("a"), on("b"), target=3)
    assert drained(waiting) == []
    assert targets(waiting) == []
    assert kept(waiting)["a"] == "replacement"
    came = make_node("c", fleet)
    assert drained(planned(fleet, *nodes, came, on("a"), on("b"), target=3)) == ["a"]


@pytest.mark.parametrize("why", ["expired", "rebalance"])
def test_fleet_at_its_minimum_buys_nothing_that_pods_of_one_zone_may_not_reach(why: str) -> None:
    """Nodes came up in the other zone, stood idle, were ended, and were bought again, for ever."""
    zones = ("us-west-2a", "us-west-2b")
    fleet = make_scene_fleet(expire_after_seconds=DAY, min_capacity=1)
    pinned = on("a", cpu="3", node_selector={"topology.kubernetes.io/zone": zones[0]})
    node = replace(rebalance("a"), created_at=ago(DAY / 2))
    if why == "expired":
        node = replace(make_node("a", fleet), created_at=ago(2 * DAY))
    made = planned(replace(fleet, zones=zones), node, pinned)
    assert targets(made) == []
    assert kept(made)["a"] == "no-destination"
    assert targets(planned(replace(fleet, zones=zones[:1]), node, pinned)) == [(1, 2)]


@pytest.mark.parametrize(("count", "asks"), [(1, True), (2, False)])
def test_successor_at_the_minimum_that_came_in_vain_is_asked_for_twice_only(
    count: int, asks: bool
) -> None:
    """What keeps its pods from the new nodes, a taint that no config has say, stays."""
    fleet = make_scene_fleet(expire_after_seconds=DAY, min_capacity=1)
    noted = FrozenMap({REPLACEMENT_ASKED: f"{rfc3339(ago(3600))}/{count}"})
    node = make_node("a", fleet, created_at=ago(2 * DAY), annotations=noted)
    made = planned(fleet, node, full("a"))
    assert targets(made) == ([(1, 2)] if asks else [])
    assert kept(made)["a"] == ("replacement" if asks else "no-destination")
    counts = [a.value and a.value[-1] for a in asked_of(made)]
    assert counts == (["2"] if asks else [])


def test_expired_node_whose_pods_fit_nowhere_says_so() -> None:
    """Nothing was said of it at all."""
    big = on("a", cpu="3500m")
    made = planned(replace(FLEET, max_capacity=1), aged("a", 2), big)
    assert kept(made)["a"] == "no-destination"


def test_empty_expired_node_goes_at_once_and_is_replaced_at_the_minimum() -> None:
    """There is nothing to move, and no idle time to wait for."""
    fleet = make_scene_fleet(expire_after_seconds=DAY, idle_threshold_seconds=3600)
    nodes = [replace(make_node("a", fleet), created_at=ago(2 * DAY)), make_node("b", fleet)]
    made = planned(fleet, *nodes, full("b"))
    assert [a.taint.value for a in made.actions if isinstance(a, TaintNode)] == ["expiry"]
    least = make_scene_fleet(expire_after_seconds=DAY, idle_threshold_seconds=3600, min_capacity=2)
    made = planned(least, *nodes, full("b"))
    assert targets(made) == [(2, 3)]


@pytest.mark.parametrize(
    ("changed", "code"),
    [({"max_capacity": 2, "min_capacity": 2}, "max-capacity"), ({}, "disruption-budget")],
)
def test_limits_hold_an_expired_node(changed: dict[str, Any], code: str) -> None:
    """Its age is no reason to break a promise."""
    budgets = () if changed else (DisruptionBudget(nodes=0, reasons=frozenset({"expired"})),)
    fleet = make_scene_fleet(expire_after_seconds=DAY, disruption_budgets=budgets, **changed)
    nodes = [replace(make_node("a", fleet), created_at=ago(2 * DAY)), make_node("b", fleet)]
    made = planned(fleet, *nodes, on("a"), on("b"))
    assert drained(made) == []
    assert targets(made) == []
    assert kept(made)["a"] == code


def test_explanation_says_what_a_node_must_go_for_whose_pods_fit_nowhere() -> None:
    """It was shown as used, without a word about its age or what EC2 announced."""
    expiring = make_scene_fleet(expire_after_seconds=DAY, max_capacity=1)
    old = replace(make_node("a", expiring), created_at=ago(2 * DAY))
    plain = make_scene_fleet(max_capacity=1)
    nowhere = "its pods fit on no other node: primary-small is at its max_capacity of 1"
    for fleet, node, why in (
        (expiring, old, "it is 2d old, its fleet's expire_after is 1d"),
        (plain, rebalance("a"), str(read_notice(rebalance("a")))),
    ):
        made = planned(fleet, node, full("a"))
        told_of = [(each.code, each.detail) for each in made.kept if each.node == "a"]
        assert told_of == [("no-destination", f"{why}; {nowhere}")]


def test_pods_settle_before_they_are_moved() -> None:
    """A pod that has just come is not moved again."""
    fleet = make_scene_fleet(expire_after_seconds=DAY, settle_seconds=300)
    nodes = [replace(make_node("a", fleet), created_at=ago(2 * DAY)), make_node("b", fleet)]
    made = planned(fleet, *nodes, on("a", started_at=ago(60)), on("b"))
    assert drained(made) == []
    assert kept(made)["a"] == "settling"


@pytest.mark.parametrize(
    ("made_seconds", "started_seconds", "settling"),
    [(30, 629, True), (30, 30 - DAY, True), (600, 600 - DAY, False), (2 * DAY, 60, True)],
    ids=["behind", "ahead, young", "ahead, old", "waited long for its node"],
)
def test_clock_of_a_node_neither_shortens_nor_lengthens_the_time_to_settle(
    made_seconds: float, started_seconds: float, settling: bool
) -> None:
    """The start of a pod is dated by its node, whose clock may be wrong; it was made before."""
    fleet = make_scene_fleet(settle_seconds=300)
    pod = on("a", created_at=ago(made_seconds), started_at=ago(started_seconds))
    made = planned(fleet, unneeded("a", fleet), make_node("b", fleet), full("b", "1"), pod)
    assert told(made, TaintNode) == ([] if settling else ["a"])
    assert kept(made).get("a") == ("settling" if settling else None)


def test_rebalance_recommendation_replaces_its_node_gracefully() -> None:
    """Two minutes are short: EC2 says earlier which instances are at risk."""
    made = planned(PLAIN, rebalance("a"), make_node("b", PLAIN), on("a"), on("b"))
    assert drained(made) == ["a"]
    (taint,) = [a for a in made.actions if isinstance(a, TaintNode)]
    assert (taint.policy, taint.taint.value) == ("interruption", "rebalance")
    full_up = planned(PLAIN, rebalance("a"), make_node("b", PLAIN), full("a"), full("b"))
    assert targets(full_up) == [(2, 3)]
    assert drained(full_up) == []


def test_group_that_replaces_instances_by_itself_is_asked_for_none() -> None:
    """Two nodes would come in the place of one: the group's own, and ours."""
    nodes = [rebalance("a"), make_node("b", PLAIN)]
    live = replace(make_fleet(PLAIN, 2), rebalances_capacity=True)
    cloud = make_cloud_of(nodes, live)
    made = planned(PLAIN, *nodes, full("a"), full("b"), cloud=cloud)
    assert (targets(made), drained(made), told(made, AnnotateNode)) == ([], [], [])
    assert kept(made)["a"] == "replacement"
    least = make_settings(replace(PLAIN, min_capacity=2))
    assert targets(planned(least, *nodes, on("a"), on("b"), cloud=cloud)) == []
    assert targets(planned(least, *nodes, on("b"), cloud=cloud)) == [], "an empty node"
    come = [*nodes, make_node("c", PLAIN)]
    made = planned(PLAIN, *come, full("a"), full("b"), cloud=make_cloud_of(come, live))
    assert drained(made) == ["a"]


def test_rebalance_recommendations_are_passed_over_when_the_config_says_so() -> None:
    """They come often in some pools."""
    settings = make_settings(PLAIN, drains_for_rebalance=False)
    nodes = [rebalance("a"), make_node("b", PLAIN)]
    assert drained(planned(settings, *nodes, on("a"), on("b"))) == []
    snapshot = seen(make_node("a", PLAIN), notices=(spot("a", kind="rebalance", action=""),))
    made = plan(snapshot, settings)
    assert (written(made), results(made)) == ({}, ["ignored"])


@pytest.mark.parametrize(("in_seconds", "value"), [(3600, "rebalance"), (300, "interruption")])
def test_scheduled_change_is_graceful_until_ten_minutes_before(
    in_seconds: float, value: str
) -> None:
    """Budgets hold as long as there is time; then EC2 goes on whatever they say."""
    made = planned(PLAIN, scheduled("a", in_seconds), make_node("b", PLAIN), on("a"), on("b"))
    assert [a.taint.value for a in made.actions if isinstance(a, TaintNode)] == [value]


@pytest.mark.parametrize(
    ("kind", "text"),
    [("rebalance", "rebalance-recommendation"), ("scheduled-change", "scheduled-change")],
)
def test_graceful_notices_of_the_queue_are_written_onto_their_node(kind: Any, text: str) -> None:
    """The message is deleted long before the node is empty: the node must remember."""
    notice = spot("a", 3600, kind=kind)
    nodes = [make_node("a", PLAIN), make_node("b", PLAIN)]
    made = plan(seen(*nodes, on("a"), on("b"), notices=(notice,)), make_settings(PLAIN))
    value = f"{text}/{rfc3339(ago(-3600))}"
    assert (written(made), results(made)) == ({"a": value}, ["waiting"])
    noted = plan(
        seen(announced("a", value), nodes[1], on("a"), notices=(notice,)), make_settings(PLAIN)
    )
    assert (written(noted), results(noted)) == ({}, ["acted"])


def test_interruption_outranks_a_recommendation() -> None:
    """Of two notices the one that is certain holds."""
    settings: PlannerSettings = make_settings(PLAIN)
    made = plan(seen(rebalance("a"), full("a"), notices=(spot("a"),)), settings)
    assert written(made) == {"a": f"terminate/{rfc3339(ago(-110))}"}
    assert [a.taint.value for a in made.actions if isinstance(a, TaintNode)] == ["interruption"]
    noted = announced("a", f"terminate/{rfc3339(ago(-110))}")
    late = spot("a", -30, kind="rebalance", action="")
    made = plan(seen(noted, full("a"), notices=(late,)), settings)
    assert (written(made), results(made)) == ({}, ["acted"])


def test_nothing_is_asked_for_twice_over_many_plans() -> None:
    """Many expired nodes, one plan after the other: one purchase at a time."""
    made = planned(FLEET, *(aged(f"n{n}", 2) for n in range(6)), *(full(f"n{n}") for n in range(6)))
    assert [
        (a.from_capacity, a.to_capacity) for a in made.actions if isinstance(a, SetCapacity)
    ] == [(6, 7)]
