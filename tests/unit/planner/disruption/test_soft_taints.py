"""Soft taints: kube-scheduler is asked not to fill what is about to go."""

from dataclasses import replace
from typing import Any

from reconciler.model.actions import UNNEEDED_TAINT, TaintNode, UntaintNode
from reconciler.model.cluster import Node, Taint
from reconciler.model.ids import NodeName
from reconciler.model.plan import Plan
from reconciler.planner.disruption.drains.soft_taints import update_soft_taints
from reconciler.planner.disruption_settings import DisruptionBudget, ScaleInSettings
from reconciler.planner.planner import decide
from reconciler.planner.settings import Headroom
from tests.builders import make_node, make_pod, make_settings, make_snapshot
from tests.unit.planner.disruption.scale_in.scene import (
    FLEET,
    full,
    is_soft,
    kept,
    on,
    planned,
    told,
    unneeded,
)

SOFT = Taint(key=UNNEEDED_TAINT, value="scale-in", effect="PreferNoSchedule")


def softly(made: Plan) -> tuple[list[str], list[str]]:
    """The nodes that get the soft taint, and those that lose it."""
    soft = [a for a in made.actions if is_soft(a)]
    put = [str(a.node) for a in soft if isinstance(a, TaintNode)]
    return put, [str(a.node) for a in soft if isinstance(a, UntaintNode)]


def soft_tainted(node: Node) -> Node:
    """The node with our soft taint."""
    return replace(node, taints=(*node.taints, SOFT))


def waiting(name: str, **changed: Any) -> Node:
    """A node that has been unneeded for five of ten minutes."""
    return unneeded(name, FLEET, 300, **changed)


def test_idle_node_whose_time_has_not_come_gets_the_soft_taint() -> None:
    """kube-scheduler prefers it to every other node, and its pods are evicted minutes later."""
    made = planned(FLEET, waiting("a"), make_node("b", FLEET), full("b"))
    assert softly(made) == (["a"], [])
    (action,) = [a for a in made.actions if isinstance(a, TaintNode)]
    assert (action.taint, action.policy) == (SOFT, "scale-in")
    assert kept(made)["a"] == "idle-time"


def test_under_used_node_has_the_soft_taint_while_its_time_runs() -> None:
    """It would receive the pods of the next node that is emptied."""
    made = planned(FLEET, waiting("a"), on("a"), make_node("b", FLEET), full("b"))
    assert softly(made) == (["a"], [])


def test_node_that_a_budget_keeps_is_not_said_to_wait_for_its_time() -> None:
    """Its time came an hour ago: people would look for a setting of times that is wrong."""
    fleet = replace(FLEET, disruption_budgets=(DisruptionBudget(nodes=0),))
    made = planned(fleet, unneeded("a", fleet), on("a"), make_node("b", fleet), full("b"))
    assert kept(made)["a"] == "disruption-budget"
    (action,) = [a for a in made.actions if isinstance(a, TaintNode)]
    assert action.because == "unneeded, and not emptied yet: new pods should go elsewhere"


def test_node_gets_no_soft_taint_in_the_plan_that_starts_its_timer() -> None:
    """Between two pods of a busy node two patches would come and go."""
    made = planned(FLEET, make_node("a", FLEET), make_node("b", FLEET), full("b"))
    assert softly(made) == ([], [])


def test_node_with_the_soft_taint_is_left_as_it_is() -> None:
    """Each plan would patch it again."""
    made = planned(FLEET, soft_tainted(waiting("a")), make_node("b", FLEET), full("b"))
    assert softly(made) == ([], [])


def test_soft_taint_goes_when_the_node_is_needed() -> None:
    """New pods would avoid a node that stays."""
    made = planned(FLEET, soft_tainted(waiting("a")), full("a"), make_node("b", FLEET), full("b"))
    assert softly(made) == ([], ["a"])


def test_soft_taint_refuses_no_pod() -> None:
    """A node would be bought for a pod that kube-scheduler can bind at once."""
    pending = make_pod("p", cpu="3")
    made = planned(FLEET, soft_tainted(waiting("a")), make_node("b", FLEET), full("b"), pending)
    assert {p.pod.name: p.node for p in made.placements} == {"p": "a"}
    assert softly(made) == ([], ["a"])


def test_pending_pod_is_expected_on_a_node_without_the_soft_taint() -> None:
    """The plan would keep the wrong node for it: kube-scheduler takes the other one."""
    pending = make_pod("p", cpu="1")
    made = planned(FLEET, soft_tainted(waiting("a")), make_node("b", FLEET), full("b"), pending)
    assert {p.pod.name: p.node for p in made.placements} == {"p": "b"}


def test_node_at_its_fleets_minimum_gets_no_soft_taint() -> None:
    """It stays, and would stay empty beside full nodes."""
    fleet = replace(FLEET, min_capacity=2)
    made = planned(fleet, waiting("a"), make_node("b", fleet), full("b"))
    assert softly(made) == ([], [])


def test_only_as_many_nodes_get_the_soft_taint_as_the_fleet_can_do_without() -> None:
    """With the soft taint on all nodes it says nothing."""
    fleet = replace(FLEET, min_capacity=2)
    nodes = [waiting("a"), waiting("b"), soft_tainted(waiting("c"))]
    made = planned(fleet, *nodes)
    assert softly(made) == ([], [])
    assert softly(planned(fleet, *nodes, make_node("d", fleet), full("d"))) == (["a"], [])


def test_spare_gets_no_soft_taint() -> None:
    """It is kept idle so that pods find it."""
    spares = ScaleInSettings(type_spares=1, type_idle_threshold_seconds=7200)
    fleet = replace(FLEET, scale_in=spares)
    made = planned(fleet, unneeded("a", fleet), make_node("b", fleet), full("b"))
    assert kept(made)["a"] == "type-spares"
    assert softly(made) == ([], [])


def test_few_nodes_change_at_a_time() -> None:
    """A cluster of hundreds would be patched at once when its work ends."""
    nodes = [waiting(f"n{number:02}") for number in range(30)]
    made = planned(FLEET, *nodes, make_node("b", FLEET), full("b"))
    assert softly(made)[0] == [f"n{number:02}" for number in range(10)]


def test_node_that_is_unneeded_and_headroom_gets_one_soft_taint() -> None:
    """The second taint replaced the first, and took one of the changes that a plan may make."""
    headroom = Headroom(sector=FLEET.sector, nodes=1)
    snapshot = make_snapshot(make_node("a", FLEET))
    builder = decide(snapshot, make_settings(FLEET, headroom=(headroom,)))
    before = len(builder.actions)
    update_soft_taints(builder, {NodeName("a"): "deschedule"}, frozenset(), {})
    (taint,) = builder.actions[before:]
    assert taint.policy == "deschedule"


def test_draining_node_keeps_its_soft_taint_and_loses_it_when_it_is_given_back() -> None:
    """Two taints that say the same would be patched one after the other."""
    eligible = soft_tainted(unneeded("a", FLEET))
    made = planned(FLEET, eligible, make_node("b", FLEET), full("b"))
    assert told(made, TaintNode) == ["a"]
    assert softly(made) == ([], [])
    draining = make_node("a", FLEET, draining=True)
    back = replace(draining, taints=(*draining.taints, SOFT))
    again = planned(FLEET, back, full("a"), make_node("b", FLEET), full("b"))
    assert told(again, UntaintNode) == ["a"]
    assert softly(again) == ([], ["a"])
