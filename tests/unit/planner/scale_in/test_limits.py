"""Limits over all removals together: demand, spares, the safety stop."""

from reconciler.model.actions import EvictPod, TaintNode, TerminateInstance
from reconciler.planner.settings import ScaleInSettings
from tests.builders import make_fleet_settings, make_node, make_pod
from tests.unit.planner.scale_in.scene import (
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


def test_three_nodes_may_always_go() -> None:
    """Small clusters would never shrink."""
    fleet = make_scene_fleet()
    made = planned(fleet, *(unneeded(n, fleet) for n in "abc"))
    assert sorted(told(made, TaintNode)) == ["a", "b", "c"]


def test_stuck_instances_count_for_the_safety_stop() -> None:
    """An empty node list would make every instance look stuck."""
    made = with_instances(4, 5000)
    assert told(made, TerminateInstance) == []
    assert [(h.node, h.instance) for h in made.held] == [("", f"i-{i}") for i in range(4)]


def test_spares_are_empty_nodes_only() -> None:
    """A node with pods would count as a spare that nobody can use."""
    spares = ScaleInSettings(type_spares=1, type_idle_threshold_seconds=7200)
    fleet = make_fleet_settings(scale_in=spares)
    nodes = [unneeded("a", fleet), unneeded("e", fleet), make_node("b", fleet)]
    made = planned(fleet, *nodes, on("a"), full("b"))
    assert kept(made)["e"] == "type-spares"
    assert told(made, TaintNode) == ["a"]
