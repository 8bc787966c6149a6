"""Limits over all removals together: demand, spares, the safety stop."""

import pytest

from reconciler.model.actions import (
    UNNEEDED_SINCE,
    AnnotateNode,
    EvictPod,
    TaintNode,
    TerminateInstance,
)
from reconciler.planner.planner import plan
from tests.builders import (
    AWAY,
    HOME,
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import (
    full,
    kept,
    make_scene_fleet,
    moves,
    on,
    planned,
    told,
    unneeded,
    with_instances,
)


def test_demand_with_its_over_subscription_keeps_a_node_that_it_would_need() -> None:
    """The node would go, and come back with the next pod of the same burst."""
    for over, leaves in ((0.0, ["e"]), (0.5, [])):
        fleet = make_fleet_settings(over_subscription=over)
        nodes = [make_node("b", fleet), unneeded("e", fleet)]
        made = planned(fleet, *nodes, on("b", cpu="2"), make_pod(cpu="2", memory="64Mi"))
        assert [p.node for p in made.placements] == ["b"]
        assert told(made, TaintNode) == leaves


def test_demand_that_fills_a_node_alone_asks_for_nothing_on_top() -> None:
    """Over-subscription is capped at a whole node: the idle one would stay for ever."""
    fleet = make_fleet_settings(over_subscription=0.5)
    nodes = [make_node("b", fleet), unneeded("e", fleet)]
    made = planned(fleet, *nodes, make_pod(cpu="4", memory="64Mi"))
    taken = {p.node for p in made.placements}
    assert told(made, TaintNode) == (["e"] if taken == {"b"} else [])


def test_removal_of_too_many_nodes_waits_for_a_second_list() -> None:
    """An empty answer of the API server would end the cluster."""
    fleet = make_scene_fleet(non_empty_at_once_max=9, empty_at_once_max=9)
    nodes = [unneeded(n, fleet) for n in "abcde"] + [make_node(n, fleet) for n in "xyz"]
    pods = [on("a"), on("b"), *(full(n) for n in "xyz")]
    made = planned(fleet, *nodes, *pods)
    assert told(made, TaintNode) + told(made, EvictPod) == []
    assert moves(made) == {}
    assert [(h.node, h.code) for h in made.held] == [(n, "safety-stop") for n in "abcde"]
    again = planned(fleet, *nodes, *pods, relists=2)
    assert sorted(told(again, TaintNode)) == list("abcde")
    assert again.held == ()


@pytest.mark.parametrize(
    ("idle", "busy", "held"),
    [(3, 0, 0), (4, 0, 4), (6, 0, 6), (4, 9, 4), (4, 10, 0), (9, 21, 0), (10, 20, 10)],
)
def test_safety_stop_holds_more_than_three_and_thirty_percent_until_lists_agree(
    idle: int, busy: int, held: int
) -> None:
    """An empty answer would empty the cluster, a small or really empty one be paid for."""
    fleet = make_fleet_settings()
    nodes = [unneeded(f"i{n}", fleet) for n in range(idle)]
    used = [make_node(f"b{n}", fleet) for n in range(busy)]
    pods = [make_pod(f"p{n}", node=f"b{n}") for n in range(busy)]
    made = planned(fleet, *nodes, *used, *pods)
    assert len(made.held) == held
    assert len(told(made, TaintNode)) == (0 if held else idle)
    assert {h.code for h in made.held} <= {"safety-stop"}
    again = planned(fleet, *nodes, *used, *pods, relists=2)
    assert len(told(again, TaintNode)) == idle


def test_nothing_is_removed_by_the_first_list_after_the_api_server_was_out_of_reach() -> None:
    """Nodes that had booted meanwhile were shown as not Ready, and ended in the very first plan."""
    fleet = make_fleet_settings()
    idle, used = unneeded("idle", fleet), make_node("used", fleet)
    silent = make_node("new", fleet, ready=False, created_at=ago(5000), ready_changed_at=ago(5000))
    for node, kind in ((idle, TaintNode), (silent, TerminateInstance)):
        made = planned(fleet, node, used, full("used"), relists=1, heard_again=True)
        assert told(made, kind) == []
        assert [(each.node, each.code) for each in made.held] == [(node.name, "safety-stop")]
        for state in ({"relists": 2, "heard_again": True}, {"relists": 1}):
            assert told(planned(fleet, node, used, full("used"), **state), kind) == [node.name]
    none = with_instances(1, 5000, relists=1, heard_again=True)
    assert told(none, TerminateInstance) == []
    assert [each.instance for each in none.held] == ["i-0"]
    assert [fleet_state.stuck_in_a_row for fleet_state in none.fleet_states] == []


def test_stuck_instances_count_for_the_safety_stop() -> None:
    """An empty node list would make every instance look stuck."""
    made = with_instances(4, 5000)
    assert told(made, TerminateInstance) == []
    assert [(h.node, h.instance) for h in made.held] == [("", f"i-{i}") for i in range(4)]


def test_type_spares_are_kept_until_the_type_threshold() -> None:
    """The next burst would wait for a launch although spares were asked for."""
    fleet = make_scene_fleet(type_spares=1, type_idle_threshold_seconds=3600)
    old = unneeded("c", fleet, 7200, ready_changed_at=ago(9000))
    made = planned(fleet, unneeded("a", fleet, 900), unneeded("b", fleet, 1000), old)
    assert sorted(told(made, TaintNode)) == ["a", "c"]
    assert kept(made) == {"b": "type-spares"}


def test_spares_count_per_instance_type() -> None:
    """One type's spare would let the other type's last node go."""
    fleet = make_scene_fleet(type_spares=1, type_idle_threshold_seconds=3600)
    labels = {"node.kubernetes.io/instance-type": "other"}
    nodes = [unneeded("a", fleet, 900), unneeded("b", fleet, 900, labels=labels)]
    assert told(planned(fleet, *nodes), TaintNode) == []


def test_spares_are_empty_nodes_only() -> None:
    """A node with pods would count as a spare that nobody can use."""
    fleet = make_scene_fleet(type_spares=1, type_idle_threshold_seconds=7200)
    nodes = [unneeded("a", fleet), unneeded("e", fleet), make_node("b", fleet)]
    made = planned(fleet, *nodes, on("a"), full("b"))
    assert kept(made)["e"] == "type-spares"
    assert told(made, TaintNode) == ["a"]


def test_sector_whose_regions_are_silent_ends_no_plan() -> None:
    """Every cycle would end in a traceback for as long as EC2 does not answer there."""
    away = make_fleet_settings("small", "away", regions=(AWAY,), over_subscription=0.3)
    home = make_fleet_settings("small", "home")
    node = make_node("n", home)
    cloud = make_cloud_of(
        [node], make_fleet(home, 1), regions=frozenset({HOME}), silent=frozenset({AWAY})
    )
    settings = make_settings(away, home, regions=(HOME, AWAY))
    made = plan(make_snapshot(node, make_pod(), cloud=cloud), settings)
    assert [p.node for p in made.placements] == ["n"]


def test_node_that_is_needed_again_is_reported_that_its_timer_is_removed() -> None:
    """The fleet's minimum alone does not say what was done to the node's annotation."""
    fleet = make_scene_fleet(min_capacity=2)
    made = planned(fleet, unneeded("a", fleet), unneeded("b", fleet), on("a"), on("b"))
    removed = [action for action in made.actions if isinstance(action, AnnotateNode)]
    assert {
        (annotate_node.key, annotate_node.value, annotate_node.because) for annotate_node in removed
    } == {
        (
            UNNEEDED_SINCE,
            None,
            "no longer unneeded: the fleet is at its min_capacity of 2; its timer is removed",
        )
    }
