"""A move has a price: pods settle before they move, and a move saves more than it costs."""

from dataclasses import replace
from decimal import Decimal

import pytest

from reconciler.model.actions import EvictPod, TaintNode, begins_drain
from reconciler.planner.disruption_settings import ScaleInSettings
from tests.builders import ago, make_fleet_settings, make_node, make_pod
from tests.unit.planner.disruption.scale_in.consolidation import LARGE, SMALL, planned, raised
from tests.unit.planner.disruption.scale_in.scene import FLEET, kept, on, told, unneeded
from tests.unit.planner.disruption.scale_in.scene import planned as planned_for


@pytest.mark.parametrize(("bound_seconds_ago", "goes"), [(299, False), (300, True)])
def test_node_stays_until_its_last_pod_has_settled(bound_seconds_ago: int, goes: bool) -> None:
    """The replica that was moved a minute ago was moved again, eight times in twelve minutes."""
    nodes = unneeded("a", FLEET), make_node("b", FLEET)
    old, young = on("a", "old"), on("a", "young", started_at=ago(bound_seconds_ago))
    made = planned_for(FLEET, *nodes, old, young, on("b", cpu="2"))
    assert told(made, TaintNode) == (["a"] if goes else [])
    assert kept(made).get("a") == (None if goes else "settling")


def test_pod_that_has_not_started_counts_from_its_creation() -> None:
    """Its image may take minutes to pull: it was bound only a moment ago all the same."""
    nodes = unneeded("a", FLEET), make_node("b", FLEET)
    made = planned_for(FLEET, *nodes, on("a", created_at=ago(10)), on("b", cpu="2"))
    assert kept(made)["a"] == "settling"


@pytest.mark.parametrize("started", [None, -3600, 3600], ids=["not-yet", "ahead", "behind"])
def test_pod_that_waited_long_counts_from_its_binding(started: float | None) -> None:
    """Bound a second ago it was evicted: its kubelet reported no start, or has a wrong clock."""
    nodes = unneeded("a", FLEET), make_node("b", FLEET)
    start = None if started is None else ago(started)
    for bound, code in ((1, "settling"), (300, None)):
        pod = on("a", created_at=ago(7200), scheduled_at=ago(bound), started_at=start)
        assert kept(planned_for(FLEET, *nodes, pod, on("b", cpu="2"))).get("a") == code


def test_daemon_pods_do_not_hold_their_node() -> None:
    """A DaemonSet that is rolled out would stop scale-in in the whole cluster."""
    nodes = unneeded("a", FLEET), make_node("b", FLEET)
    daemon = on("a", "agent", owner="DaemonSet", started_at=ago(10))
    made = planned_for(FLEET, *nodes, daemon, on("a", "old"), on("b", cpu="2"))
    assert told(made, TaintNode) == ["a"]


def test_fleet_whose_removal_was_approved_does_not_wait_for_pods_to_settle() -> None:
    """New pods come to its nodes for as long as they select it: it would never be empty."""
    going = replace(FLEET, departing=True, max_capacity=0)
    other = make_fleet_settings("other")
    nodes = unneeded("a", going), make_node("b", other)
    made = planned(*nodes, on("a", started_at=ago(10)), fleets=(going, other))
    assert told(made, TaintNode) == ["a"]


@pytest.mark.parametrize(("after", "goes"), [(300, True), (900, False)])
def test_consolidation_may_wait_longer_than_other_moves(after: int, goes: bool) -> None:
    """A node in good use is emptied only for the money: that can wait for a quiet moment."""
    fleet = replace(FLEET, scale_in=ScaleInSettings(consolidate_after_seconds=after))
    nodes = unneeded("a", fleet), make_node("b", fleet)
    busy = on("a", cpu="2500m", started_at=ago(600))
    made = planned(*nodes, busy, on("b", cpu="1"), fleets=(fleet,))
    assert told(made, TaintNode) == (["a"] if goes else [])


@pytest.mark.parametrize(("cost", "goes"), [("0.05", True), ("0.06", False)])
def test_node_is_emptied_only_if_that_saves_more_than_the_moves_cost(cost: str, goes: bool) -> None:
    """Four pods restarted for a node at 0.20 USD an hour."""
    priced = make_fleet_settings("small", price="0.20")
    fleet = replace(priced, scale_in=ScaleInSettings(move_cost_usd=Decimal(cost)))
    nodes = unneeded("a", fleet), make_node("b", fleet)
    made = planned_for(
        fleet, *nodes, *(on("a", f"p{n}", "100m") for n in range(4)), on("b", cpu="2")
    )
    assert told(made, TaintNode) == (["a"] if goes else [])
    if goes:
        (taint,) = [a for a in made.actions if begins_drain(a)]
        assert "saves 0.2 USD/h for 4 moves counted as 0.2 USD" in taint.because
    else:
        assert kept(made)["a"] == "move-cost"


def test_replacement_is_not_bought_for_less_than_the_moves_cost() -> None:
    """Each cent an hour would restart a whole node's pods."""
    assert raised(planned(unneeded("l", LARGE), on("l", cpu="3")))
    dear = replace(LARGE, scale_in=ScaleInSettings(move_cost_usd=Decimal(1)))
    assert raised(planned(unneeded("l", dear), on("l", cpu="3"), fleets=(SMALL, dear))) == []


def test_of_equal_nodes_the_one_with_fewer_moves_goes() -> None:
    """The saving is the same, the disruption is not."""
    nodes = unneeded("a", FLEET), unneeded("b", FLEET), make_node("c", FLEET)
    many = [make_pod(f"p{n}", node="a", cpu="250m", memory="16Mi") for n in range(4)]
    made = planned_for(FLEET, *nodes, *many, on("b", cpu="1"), on("c", cpu="1"))
    assert told(made, TaintNode) == ["b"]
    assert told(made, EvictPod) == ["on-b"]
