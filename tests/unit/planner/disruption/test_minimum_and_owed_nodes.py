"""`min_capacity` is held against nodes that take pods: what EC2 owes may never come."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from reconciler.model.actions import INTERRUPTION, EvictPod, TaintNode, UntaintNode
from reconciler.model.cluster import Node
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import InstanceId, Region
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import DisruptionBudget
from tests.builders import (
    ago,
    make_cloud_of,
    make_fleet,
    make_node,
    make_pod,
    make_settings,
)
from tests.unit.planner.disruption.interrupted_nodes import begun, noticed, targets
from tests.unit.planner.disruption.scale_in.consolidation import raised
from tests.unit.planner.disruption.scale_in.scene import (
    drained,
    full,
    kept,
    make_scene_fleet,
    on,
    planned,
    told,
    unneeded,
)
from tests.unit.planner.placed import drained as emptied

FLEET = make_scene_fleet(min_capacity=2)
DAY = 86_400.0


def young(name: str, *, ready: bool) -> Node:
    """A node that joined two minutes ago."""
    return make_node(name, FLEET, created_at=ago(120), ready=ready)


@pytest.mark.parametrize(("minimum", "gone"), [(2, []), (1, ["a"]), (0, ["a", "b"])])
def test_idle_nodes_of_the_minimum_stay_while_what_a_burst_asked_for_is_owed(
    minimum: int, gone: list[str]
) -> None:
    """The last running nodes were ended for a target that EC2 had no capacity for."""
    fleet = replace(FLEET, min_capacity=minimum)
    made = planned(fleet, unneeded("a", fleet), unneeded("b", fleet), target=6)
    assert emptied(made) == gone
    assert {kept(made)[name] for name in {"a", "b"} - set(gone)} <= {"min-capacity"}


def test_under_used_node_of_the_minimum_stays_while_nodes_are_owed() -> None:
    """Its pods would fit on the other node, of which the minimum asks for two."""
    made = planned(FLEET, unneeded("a", FLEET), make_node("b", FLEET), full("b"), on("a"), target=6)
    assert emptied(made) == []
    assert kept(made)["a"] == "min-capacity"


@pytest.mark.parametrize("ready", [False, True])
def test_idle_node_goes_when_a_third_takes_pods(ready: bool) -> None:
    """A node that has joined and is not Ready yet may never be."""
    nodes = [unneeded("a", FLEET), make_node("b", FLEET), young("c", ready=ready)]
    made = planned(FLEET, *nodes, full("b"), *([full("c")] if ready else []))
    assert emptied(made) == (["a"] if ready else [])


def test_idle_expired_nodes_wait_for_the_nodes_that_were_asked_for_in_their_place() -> None:
    """Both were ended two seconds after two had been asked for, which never came."""
    fleet = replace(FLEET, expire_after_seconds=DAY)
    old = [make_node(name, fleet, created_at=ago(2 * DAY)) for name in ("a", "b")]
    assert targets(planned(fleet, *old)) == [(2, 4)]
    made = planned(fleet, *old, target=4)
    assert (emptied(made), targets(made)) == ([], [])
    assert kept(made) == {"a": "replacement", "b": "replacement"}
    assert targets(planned(fleet, *old, target=3)) == [(3, 4)], "the second has none yet"


def test_recommended_node_is_drained_when_its_successor_has_come() -> None:
    """The target had only been raised."""
    notice = FrozenMap({INTERRUPTION: f"rebalance-recommendation/{rfc3339(ago(60))}"})
    nodes = [make_node("a", FLEET, annotations=notice), make_node("b", FLEET)]
    pods = [on("a"), full("b", "2")]
    made = planned(FLEET, *nodes, *pods, target=3)
    assert (emptied(made), targets(made)) == ([], [])
    assert kept(made)["a"] == "replacement"
    assert emptied(planned(FLEET, *nodes, make_node("c", FLEET), *pods, target=3)) == ["a"]


def test_node_that_waits_for_its_successor_uses_a_disruption_budget_up() -> None:
    """Two would be asked for where only one may be disrupted."""
    fleet = replace(FLEET, expire_after_seconds=DAY)
    old = [make_node(name, fleet, created_at=ago(2 * DAY)) for name in ("a", "b")]
    settings = replace(make_settings(fleet), disruption_budgets=(DisruptionBudget(nodes=1),))
    made = planned(settings, *old, target=3)
    assert (emptied(made), targets(made)) == ([], [])
    assert kept(made) == {"a": "replacement", "b": "disruption-budget"}


def test_drain_is_given_back_when_another_node_of_the_minimum_has_gone() -> None:
    """The target holds the node that is to come in its place, and two would have been one."""
    other = make_node("c", FLEET)
    nodes = [drained("a", FLEET), make_node("b", FLEET)]
    made = planned(FLEET, *nodes, on("a", cpu="100m"), full("b"), target=3)
    assert (told(made, EvictPod), told(made, UntaintNode)) == ([], ["a"])
    made = planned(FLEET, *nodes, other, on("a", cpu="100m"), full("b"), full("c"))
    assert (told(made, EvictPod), told(made, UntaintNode)) == (["on-a"], [])


def test_drain_goes_on_while_another_node_of_the_minimum_is_not_ready() -> None:
    """It may be back in a moment: pods would have been moved in vain."""
    away = make_node("c", FLEET, created_at=ago(DAY), ready=False)
    made = planned(
        FLEET, drained("a", FLEET), make_node("b", FLEET), away, on("a", cpu="100m"), full("b")
    )
    assert (told(made, EvictPod), told(made, UntaintNode)) == (["on-a"], [])
    assert told(made, TaintNode) == []


def test_answer_that_leaves_an_instance_out_gives_no_drain_back() -> None:
    """EC2's lists lag behind each other: pods would have been moved in vain."""
    nodes = [drained("a", FLEET), make_node("b", FLEET), make_node("c", FLEET)]
    live = replace(make_fleet(FLEET, 3), fulfilled_capacity=3.0)
    cloud = replace(make_cloud_of(nodes[:2], live), instances_asked=True)
    made = planned(FLEET, *nodes, on("a", cpu="100m"), full("b"), full("c"), cloud=cloud)
    assert (told(made, EvictPod), told(made, UntaintNode)) == (["on-a"], [])


def test_region_whose_instances_are_missing_altogether_keeps_its_nodes() -> None:
    """Pods would wait for nodes that are there already, and nothing would be bought for them."""
    nodes = [make_node("a", FLEET), make_node("b", FLEET)]
    live = replace(make_fleet(FLEET, 2), fulfilled_capacity=2.0)
    known, other = make_cloud_of(nodes, live), Region("eu-west-1")
    elsewhere = replace(known.instances[0], id=InstanceId("i-other"), region=other, fleet_id=None)
    cloud = replace(
        known,
        instances=(elsewhere,),
        regions=known.regions | {other},
        instances_known=True,
        instances_asked=True,
    )
    pod = make_pod("waiting", cpu="3")
    made = planned(FLEET, *nodes, full("a"), full("b"), pod, cloud=cloud)
    assert targets(made) == [(2, 3)]


@pytest.mark.parametrize("found", [noticed, begun], ids=["notice", "drain"])
def test_node_that_the_minimum_asks_for_takes_the_pods_of_the_one_that_ec2_takes_back(
    found: Callable[..., Node],
) -> None:
    """The first plan bought a cheaper node for them, and the second one for the minimum."""
    fleet, cheap = replace(FLEET, min_capacity=1), make_scene_fleet(size="cheap", price="0.01")
    pods = [on("a", "one"), on("a", "two")]
    made = planned(make_settings(fleet, cheap), found("a", fleet=fleet), *pods)
    assert raised(made) == [(fleet.name, 2, "min-capacity")]
