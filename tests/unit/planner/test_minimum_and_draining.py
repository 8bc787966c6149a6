"""min_capacity beside nodes on their way out and nodes beyond the target (docs/scale-up.md)."""

import pytest

from reconciler.model.actions import DRAINING_TAINT, TerminateInstance, UntaintNode
from reconciler.model.cluster import Node, Taint
from reconciler.model.ids import FleetId, Region
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    AWAY,
    HOME,
    ago,
    capacity_error,
    kept_proof,
    make_cloud,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.placed import new_targets


def interrupted(name: str, fleet: FleetSettings) -> Node:
    """A node that EC2 is about to take."""
    taint = Taint(key=DRAINING_TAINT, value="interruption", effect="NoSchedule")
    return make_node(name, fleet, taints=(taint,))


def planned(fleet: FleetSettings, *objects: Node, target: int | None) -> Plan:
    """The plan for nodes of one fleet; without a target nothing is known of EC2."""
    cloud = None
    if target is not None:
        cloud = make_cloud_of(objects, make_fleet(fleet, target))
    return plan(make_snapshot(*objects, cloud=cloud), make_settings(fleet))


@pytest.mark.parametrize("maximum", [None, 5])
def test_draining_node_below_new_minimum_is_taken_back_not_replaced(maximum: int | None) -> None:
    """A raised minimum would launch a node beside one that is only being emptied."""
    fleet = make_fleet_settings(min_capacity=2, max_capacity=maximum)
    made = planned(fleet, make_node("a", fleet), make_node("b", fleet, draining=True), target=2)
    assert new_targets(made) == []
    assert [a.node for a in made.actions if isinstance(a, UntaintNode)] == ["b"]
    assert not [a for a in made.actions if isinstance(a, TerminateInstance)]


def test_minimum_of_a_fleet_that_is_not_at_home_is_kept_in_its_first_region() -> None:
    """A fleet of another region alone would stay empty, whatever its minimum."""
    further = Region("eu-west-1")
    fleet = make_fleet_settings(min_capacity=2, regions=(AWAY, further))
    lives = [
        make_fleet(fleet, 0, id=FleetId(f"fleet-{region}"), region=region)
        for region in (AWAY, further)
    ]
    settings = make_settings(fleet, regions=(HOME, AWAY, further))
    made = plan(make_snapshot(cloud=make_cloud(*lives)), settings)
    assert [
        (fleet_plan.region, fleet_plan.min, fleet_plan.target) for fleet_plan in made.fleets
    ] == [
        (AWAY, 2, 2),
        (further, 0, 0),
    ]


@pytest.mark.parametrize("target", [None, 3])
def test_two_draining_nodes_over_the_minimum_leave_the_target_alone(target: int | None) -> None:
    """The target once went down in the scale-up step, or planning crashed."""
    fleet = make_fleet_settings(min_capacity=2)
    nodes = [make_node(n, fleet, draining=n != "a") for n in "abc"]
    made = planned(fleet, *nodes, target=target)
    assert [f.target for f in made.fleets] == [2]
    assert sum(isinstance(a, TerminateInstance) for a in made.actions) == 1


@pytest.mark.parametrize("maximum", [None, 5])
def test_interrupted_node_of_a_minimum_is_replaced_before_it_goes(maximum: int | None) -> None:
    """A fleet would be below its minimum for as long as a launch takes."""
    fleet = make_fleet_settings(min_capacity=1, max_capacity=maximum)
    made = planned(fleet, interrupted("a", fleet), target=1)
    assert new_targets(made) == [2]


def test_interrupted_node_without_a_minimum_raises_nothing() -> None:
    """Empty fleets would launch a node for each interruption."""
    fleet = make_fleet_settings()
    assert new_targets(planned(fleet, interrupted("a", fleet), target=1)) == []


def test_nodes_beyond_the_target_count_for_the_minimum() -> None:
    """Pods would be promised a node that EC2, holding enough, never launches."""
    fleet = make_fleet_settings(min_capacity=2)
    nodes = [make_node(n, fleet, unschedulable=True) for n in "abc"]
    cloud = make_cloud_of(nodes, make_fleet(fleet, 1))
    made = plan(make_snapshot(*nodes, make_pod(), cloud=cloud), make_settings(fleet))
    assert new_targets(made) == [4]
    assert [p.new_node for p in made.placements] == [0]


def test_raise_after_a_crashed_scale_in_ends_the_node_with_its_target() -> None:
    """Ending it without lowering the raised target would make EC2 launch a node nobody needs."""
    fleet = make_fleet_settings(cpu=4)
    old = make_node("old", fleet, draining=True)
    nodes = [make_node("full", fleet), old]
    pods = [
        make_pod("runs", node="full", cpu=4),
        make_pod("waits", cpu=4, node_selector={"size": "small"}),
    ]
    tainted = make_node("old", fleet, draining=True, labels={"size": "other"})
    cloud = make_cloud_of(nodes, make_fleet(fleet, 1))
    made = plan(make_snapshot(nodes[0], tainted, *pods, cloud=cloud), make_settings(fleet))
    assert new_targets(made) == [3]
    assert [a.decrement for a in made.actions if isinstance(a, TerminateInstance)] == [True]
    assert [f.target for f in made.fleets] == [2]


def test_surplus_target_of_an_unavailable_fleet_is_taken_back_to_the_maximum() -> None:
    """The moment capacity returns EC2 would launch more than max_capacity allows."""
    fleet = make_fleet_settings(max_capacity=1, regions=(HOME, AWAY))
    away = make_fleet(fleet, 3, region=AWAY, launch_errors=(capacity_error(),))
    made = plan(
        make_snapshot(cloud=make_cloud(make_fleet(fleet), away)),
        make_settings(fleet, regions=(HOME, AWAY)),
    )
    assert new_targets(made) == [1]


def test_instance_that_never_joins_is_not_replaced_above_the_maximum() -> None:
    """EC2 would launch another for it, which never joins either, for ever."""
    fleet = make_fleet_settings(max_capacity=0)
    live = make_fleet(fleet, 1)
    stuck = make_instance(make_node("x", fleet), live, launched_at=ago(5000))
    cloud = make_cloud(live, instances=[stuck])
    made = plan(make_snapshot(cloud=cloud, **kept_proof(live)), make_settings(fleet))
    assert new_targets(made) == [0]
    assert [a.instance for a in made.actions if isinstance(a, TerminateInstance)] == [stuck.id]
