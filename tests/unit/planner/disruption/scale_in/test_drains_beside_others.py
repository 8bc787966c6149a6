"""Drains of several nodes in one plan, and what each step of a drain leaves as it is."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    EvictPod,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node, PodDisruptionBudget
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from reconciler.planner.planner import plan
from tests.builders import (
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_settings,
    make_snapshot,
    selecting,
)
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    drained,
    full,
    kept,
    make_scene_fleet,
    moves,
    on,
    planned,
    told,
    unneeded,
)

ONE, OTHER = make_fleet_settings("one"), make_fleet_settings("other")


def of_two_fleets(one: int, other: int, *objects: Any) -> Plan:
    """The plan of two fleets with these targets."""
    nodes = [each for each in objects if isinstance(each, Node)]
    cloud = make_cloud_of(nodes, make_fleet(ONE, one), make_fleet(OTHER, other))
    return plan(make_snapshot(*objects, cloud=cloud), make_settings(ONE, OTHER))


def ends(made: Plan) -> dict[str, bool]:
    """The nodes that the plan ends, and whether their fleet's target is lowered with each."""
    found = (action for action in made.actions if isinstance(action, TerminateInstance))
    return {str(action.node): action.decrement for action in found}


def test_drain_that_goes_on_keeps_its_start() -> None:
    """Written again in each plan it would never time out, and the node be closed for good."""
    fleet = make_scene_fleet()
    made = planned(fleet, drained("a", fleet, 60), make_node("b", fleet), on("a"), full("b"))
    assert told(made, EvictPod) == ["on-a"]
    assert annotations_set(made) == set()


def test_target_that_was_lowered_already_is_not_lowered_for_the_end_of_another_fleets_node() -> (
    None
):
    """After a crash between the two steps EC2 would end a node of its own choice."""
    objects = [
        drained("o1", ONE, 60),
        make_node("o2", ONE),
        drained("p1", OTHER, 60),
        make_node("p2", OTHER),
        full("o2"),
        full("p2"),
    ]
    assert ends(of_two_fleets(2, 2, *objects)) == {"o1": True, "p1": True}
    assert ends(of_two_fleets(2, 1, *objects)) == {"o1": True, "p1": False}
    assert ends(of_two_fleets(1, 2, *objects)) == {"o1": False, "p1": True}


def test_target_that_was_lowered_already_is_not_lowered_for_a_node_that_is_replaced() -> None:
    """The target still asks for the silent node: it would fall below what is needed."""
    silent = make_node("silent", ONE, ready=False, ready_changed_at=ago(900))
    objects = [silent, drained("a", ONE, 60), make_node("b", ONE), make_node("c", ONE)]
    made = of_two_fleets(3, 0, *objects, full("b"), full("c"))
    assert ends(made) == {"silent": False, "a": False}


def test_drains_under_way_take_no_target_below_the_minimum_together() -> None:
    """Each alone would keep to it. EC2 does not show one instance: no surplus may be counted on."""
    fleet = make_scene_fleet(min_capacity=2)
    nodes = [drained("a", fleet), drained("b", fleet), make_node("c", fleet), make_node("d", fleet)]
    live = make_fleet(fleet, 3)
    shown = make_cloud_of(nodes[:3], live, instances_asked=True)
    pods = [on("a"), on("b"), on("c", cpu="1"), on("d", cpu="1")]
    made = planned(fleet, *nodes, *pods, cloud=shown)
    assert told(made, EvictPod) == ["on-a"]
    assert {a.node: a.because for a in made.actions if isinstance(a, UntaintNode)} == {
        "b": "the fleet is at its min_capacity of 2"
    }


def test_node_whose_drain_has_just_ended_holds_up_no_other() -> None:
    """A person removed its taint; all nodes after it in the list would stay."""
    fleet = make_scene_fleet()
    freed = make_node("a", fleet, annotations=FrozenMap({DRAIN_STARTED: rfc3339(ago(60))}))
    made = planned(
        fleet, freed, unneeded("b", fleet), make_node("c", fleet), on("a"), on("b"), full("c")
    )
    assert told(made, TaintNode) == ["b"]
    assert kept(made)["a"] == "drain-cool-off"


def test_only_pods_that_may_leave_now_are_shown_as_moved() -> None:
    """A budget keeps the other; `plan` would show a move that does not happen."""
    fleet = make_scene_fleet()
    pods = [on("a", f"w{n}", "100m", labels={"app": "w"}) for n in range(2)]
    budget = PodDisruptionBudget(
        namespace="ns", name="w", selector=selecting(app="w"), disruptions_allowed=1
    )
    nodes = [drained("a", fleet, 30), make_node("b", fleet)]
    made = planned(fleet, *nodes, *pods, full("b"), budgets=(budget,))
    assert told(made, EvictPod) == ["w0"]
    assert moves(made) == {"w0": "b"}
    (why,) = [each.detail for each in made.kept if each.node == "a"]
    assert why.startswith("the drain continues: 1 of 2 pods now, as ")
    assert {a.because for a in made.actions if isinstance(a, EvictPod)} == {why}


def test_drained_node_without_a_start_is_ended_with_what_hangs_there() -> None:
    """A pod that hangs there would end all planning."""
    fleet = make_scene_fleet()
    hangs = on("a", deleting=True, deletion_at=ago(600))
    node = make_node("a", fleet, draining=True)
    made = planned(fleet, node, make_node("b", fleet), hangs, full("b"))
    assert ends(made) == {"a": True}


@pytest.mark.parametrize("timed", [True, False])
def test_drained_node_that_pods_need_again_loses_its_timer(timed: bool) -> None:
    """It would be drained again as soon as those pods are gone, without its full time."""
    fleet = make_scene_fleet(max_capacity=1)
    node = drained("a", fleet)
    if not timed:
        node = replace(node, annotations=FrozenMap({DRAIN_STARTED: rfc3339(ago(30))}))
    made = planned(fleet, node, on("", "new", "3500m"))
    assert told(made, UntaintNode) == ["a"]
    removed = {key for name, key, value in annotations_set(made) if value is None}
    assert removed == {"drain-started", "unneeded-since"} if timed else {"drain-started"}


def test_drains_of_one_plan_leave_the_minimum_together() -> None:
    """Each alone would keep to it, and the fleet buy again what the second took away."""
    fleet = make_scene_fleet(min_capacity=2, non_empty_at_once_max=10)
    nodes = [unneeded("a", fleet), unneeded("b", fleet), make_node("c", fleet)]
    made = planned(fleet, *nodes, on("a"), on("b"), on("c", cpu="1"))
    assert told(made, TaintNode) == ["a"]
    assert kept(made)["b"] == "min-capacity"
