"""Instances that somebody put in standby: nodes still, but no part of what their group provides."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import SetCapacity, TaintNode, TerminateInstance, UntaintNode
from reconciler.model.cluster import Node, Pod
from reconciler.model.fleet import Fleet
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    idle,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

SMALL = make_fleet_settings(provider="asg", auto_scaling_group="workers", scale_in=idle(60))
ASIDE = {"protected": True, "set_aside": True}


def group(target: int, **changed: Any) -> Fleet:
    """The group, as AWS shows it."""
    return replace(make_fleet(SMALL, target, id="workers"), name="workers", **changed)


def planned(
    live: Fleet, *objects: Node | Pod, least: int = 0, aside: frozenset[str] = frozenset({"a"})
) -> Plan:
    """The plan for one group; nodes named in `aside` are in standby."""
    nodes = [each for each in objects if isinstance(each, Node)]
    instances = [make_instance(n, live, **(ASIDE if n.name in aside else {})) for n in nodes]
    snapshot = make_snapshot(*objects, cloud=make_cloud(live, instances=instances))
    return plan(snapshot, make_settings(replace(SMALL, min_capacity=least)))


def raised(made: Plan) -> list[tuple[int, int]]:
    """Targets that are set: from, to."""
    found = [a for a in made.actions if isinstance(a, SetCapacity)]
    return [(a.from_capacity, a.to_capacity) for a in found]


def cordoned(name: str = "a") -> Node:
    """The node that somebody looks at."""
    return make_node(name, SMALL, unschedulable=True)


def test_one_pod_asks_for_one_node_beside_that_in_standby() -> None:
    """Two would come: the group's desired capacity does not count the one in standby."""
    assert raised(planned(group(0), cordoned(), make_pod())) == [(0, 1)]


def test_replacement_that_the_group_launches_by_itself_is_waited_for() -> None:
    """A second node would be bought for the same pod."""
    assert raised(planned(group(1), cordoned(), make_pod())) == []


def test_minimum_is_held_by_instances_in_service() -> None:
    """The sector would be one node short for as long as somebody looks at the other one."""
    assert raised(planned(group(0), cordoned(), least=1)) == [(0, 1)]


def test_node_in_standby_still_takes_pods_unless_it_is_cordoned() -> None:
    """kube-scheduler knows nothing of standby: a node bought beside it would stay empty."""
    assert raised(planned(group(0), make_node("a", SMALL), make_pod())) == []


@pytest.mark.parametrize("draining", [False, True])
def test_node_in_standby_is_not_ended_and_says_why(*, draining: bool) -> None:
    """Somebody looks for a fault on it."""
    made = planned(group(1), make_node("a", SMALL, draining=draining), make_node("b", SMALL))
    touched = [a for a in made.actions if isinstance(a, (TaintNode, TerminateInstance))]
    assert "a" not in {each.node for each in touched}
    taken_back = [a.because for a in made.actions if isinstance(a, UntaintNode) and a.node == "a"]
    kept = [each.detail for each in made.kept if each.node == "a"]
    (why,) = taken_back if draining else kept
    assert "its instance is in standby" in why


def test_node_in_service_still_leaves_beside_one_in_standby() -> None:
    """One node in standby would keep all the others."""
    made = planned(group(1), cordoned(), make_node("b", SMALL, draining=True))
    ended = [a for a in made.actions if isinstance(a, TerminateInstance)]
    assert [
        (terminate_instance.node, terminate_instance.decrement) for terminate_instance in ended
    ] == [("b", True)]


def test_minimum_keeps_the_last_node_in_service() -> None:
    """The one in standby would be counted for the minimum, and the group left with none."""
    made = planned(group(1), cordoned(), make_node("b", SMALL, draining=True), least=1)
    assert [a for a in made.actions if isinstance(a, TerminateInstance)] == []


@pytest.mark.parametrize(
    ("aside", "ended"), [(ASIDE, []), ({}, ["i-lost"])], ids=["aside", "in-service"]
)
def test_instance_in_standby_that_never_joined_is_left_alone(
    aside: dict[str, bool], ended: list[str]
) -> None:
    """It would be ended as stuck while somebody finds out why it does not join."""
    live, node = group(2), make_node("b", SMALL)
    lost = make_instance(make_node("lost", SMALL), live, **aside)
    cloud = make_cloud(live, instances=[make_instance(node, live), lost])
    made = plan(make_snapshot(node, cloud=cloud), make_settings(SMALL))
    assert [a.instance for a in made.actions if isinstance(a, TerminateInstance)] == ended


def test_node_that_is_labelled_by_hand_is_no_base_for_a_purchase() -> None:
    """One pod bought as many nodes as carried the label, and one more."""
    live = group(1)
    member, by_hand = cordoned(), [cordoned(f"h{n}") for n in range(3)]
    cloud = make_cloud(live, instances=[make_instance(member, live)], instances_asked=True)
    snapshot = make_snapshot(member, *by_hand, make_pod(), cloud=cloud)
    made = plan(snapshot, make_settings(SMALL))
    assert raised(made) == [(1, 2)]
    # While the new one is on its way no second one is asked for.
    again = replace(snapshot, cloud=replace(cloud, fleets=(group(2),)))
    assert raised(plan(again, make_settings(SMALL))) == []
