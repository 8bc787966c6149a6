"""Targets below what is in use, and maxima below what is on its way."""

from dataclasses import replace
from decimal import Decimal

import pytest

from reconciler.model.actions import DO_NOT_DISRUPT, SetCapacity
from reconciler.model.ids import InstanceId
from reconciler.planner.planner import plan
from reconciler.planner.settings import Headroom
from tests.builders import (
    HOME,
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
from tests.unit.planner.disruption.scale_in.scene import full, on, planned
from tests.unit.planner.placed import new_targets

FLEET = make_fleet_settings()


def test_target_below_the_nodes_in_use_is_raised_to_them() -> None:
    """Nobody would replace them, and the next ModifyFleet of somebody else would end them."""
    made = planned(
        FLEET, make_node("a", FLEET), full("a"), make_node("b", FLEET), full("b"), target=1
    )
    assert new_targets(made) == [2]
    (raised,) = [a for a in made.actions if isinstance(a, SetCapacity)]
    assert raised.because == "2 nodes of it hold pods or are protected, its target is 1"


@pytest.mark.parametrize("target", [5, 2, 0])
@pytest.mark.parametrize(("limit", "bought"), [("5.5", 0), ("6", 1), ("100", 3)])
@pytest.mark.parametrize("asked", ["pods", "headroom"])
def test_nodes_above_the_target_count_in_the_cost_limit(
    target: int, limit: str, bought: int, asked: str
) -> None:
    """A new node comes on top of all of them: `max_hourly_usd` was exceeded by as many."""
    fleet = replace(FLEET, usd_per_hour=Decimal(1))
    names = [f"n{number}" for number in range(5)]
    nodes = [node for name in names for node in (make_node(name, fleet), full(name))]
    pending = make_pods(3, cpu="3500m") if asked == "pods" else []
    headroom = Headroom(sector="primary", nodes=3)
    made = planned(
        make_settings(
            fleet,
            usd_per_hour_max=Decimal(limit),
            headroom=() if pending else (headroom,),
        ),
        *nodes,
        *pending,
        target=target,
    )
    (after,) = [fleet_plan.target for fleet_plan in made.fleets]
    assert after == 5 + bought


def test_silent_node_that_somebody_protected_counts_as_in_use() -> None:
    """Nobody ends it, so the target would stay below what is there for good."""
    silent = make_node("b", FLEET, ready=False, annotations={DO_NOT_DISRUPT: "true"})
    made = planned(FLEET, make_node("a", FLEET), full("a"), silent, target=1)
    assert new_targets(made) == [2]
    mortal = make_node("b", FLEET, ready=False)
    assert new_targets(planned(FLEET, make_node("a", FLEET), full("a"), mortal, target=1)) == []


def test_target_below_nodes_that_are_idle_is_left() -> None:
    """It is what is left after a crash between the lower target and the termination."""
    made = planned(FLEET, make_node("a", FLEET), full("a"), make_node("b", FLEET), target=1)
    assert new_targets(made) == []


def test_target_is_not_raised_above_the_maximum_for_nodes_in_use() -> None:
    """The limit that the operator set would be broken by the one who keeps it."""
    fleet = replace(FLEET, max_capacity=1)
    made = planned(
        fleet, make_node("a", fleet), full("a"), make_node("b", fleet), full("b"), target=1
    )
    assert new_targets(made) == []


def test_node_whose_instance_is_not_known_asks_for_no_target() -> None:
    """The fleet has replaced it already: one node too many would be bought."""
    live = make_fleet(FLEET, 1)
    here, gone = make_node("here", FLEET), make_node("gone", FLEET)
    cloud = make_cloud(live, instances=[make_instance(here, live)])
    snapshot = make_snapshot(here, gone, on("here"), on("gone"), cloud=cloud)
    assert new_targets(plan(snapshot, make_settings(FLEET))) == []


def test_maximum_below_instances_on_their_way_waits_for_them() -> None:
    """They join whatever the target says, and would then be more than it."""
    fleet = replace(FLEET, max_capacity=1)
    live = make_fleet(fleet, 3)
    first = make_instance(make_node("x", fleet), live, launched_at=ago(20), state="pending")
    pending = [replace(first, id=InstanceId(f"i-{number}")) for number in range(2)]
    cloud = make_cloud(live, instances=pending)
    waiting = make_pod("waits", cpu="3", sector="primary")
    made = plan(make_snapshot(waiting, cloud=cloud), make_settings(fleet))
    assert new_targets(made) == [2]
    assert live.region == HOME
