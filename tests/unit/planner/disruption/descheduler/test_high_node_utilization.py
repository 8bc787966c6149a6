"""HighNodeUtilization: under-used nodes are asked to stay empty, and are emptied."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import DO_NOT_DISRUPT, UNNEEDED_TAINT, TaintNode, UntaintNode
from reconciler.model.cluster import Owner, Taint
from reconciler.model.plan import Plan
from reconciler.planner.descheduler_settings import HighNodeUtilization, PodScope
from reconciler.planner.settings import PlannerSettings
from tests.builders import ago, labelled, make_node, make_settings
from tests.unit.planner.disruption.descheduler.scene import (
    FLEET,
    descheduling,
    evicted,
    nodes,
    old,
)
from tests.unit.planner.disruption.scale_in.scene import moves, planned

UNDER_20 = HighNodeUtilization(thresholds={"cpu": 20})
SOFT = Taint(key=UNNEEDED_TAINT, value="deschedule", effect="PreferNoSchedule")


def emptying(policy: HighNodeUtilization) -> PlannerSettings:
    """Settings of a fleet that can do without its nodes."""
    return replace(
        make_settings(replace(FLEET, min_capacity=0)),
        descheduler=descheduling(policy).descheduler,
        consolidation=False,
    )


def tainted(made: Plan) -> list[str]:
    """The nodes that get a taint."""
    return [action.node for action in made.actions if isinstance(action, TaintNode)]


def test_under_used_node_is_asked_to_stay_empty_and_then_emptied() -> None:
    """Without the soft taint kube-scheduler would bring the pods back."""
    settings = emptying(UNDER_20)
    pods = [old("a", "lonely", cpu="200m"), old("b", "large", cpu="2")]
    first = planned(settings, *nodes("a", "b"), *pods)
    assert evicted(first) == {}
    (marked,) = [action for action in first.actions if isinstance(action, TaintNode)]
    assert (marked.node, marked.taint.key, marked.policy) == ("a", UNNEEDED_TAINT, "deschedule")
    soft = make_node("a", FLEET, taints=(marked.taint,))
    second = planned(
        settings, soft, *nodes("b"), *pods, last_descheduled_at=first.last_descheduled_at
    )
    assert evicted(second) == {"lonely": "HighNodeUtilization"}
    assert moves(second) == {"lonely": "b"}


@pytest.mark.parametrize(("large", "number"), [("200m", 0), ("2", 1)])
def test_node_that_the_policy_does_not_empty_is_not_asked_to_stay_empty(
    large: str, number: int
) -> None:
    """All nodes are under-used, or no more than `numberOfNodes`: nothing is emptied."""
    settings = emptying(replace(UNDER_20, number_of_nodes=number))
    pods = [old("a", "lonely", cpu="200m"), old("b", "large", cpu=large)]
    made = planned(settings, *nodes("a", "b"), *pods)
    assert tainted(made) == []


def test_node_that_is_not_to_be_emptied_is_not_asked_to_stay_empty() -> None:
    """kube-scheduler would avoid a node that is not emptied."""
    settings = emptying(UNDER_20)
    kept = make_node("a", FLEET, annotations=labelled(**{DO_NOT_DISRUPT: "true"}))
    pods = [old("a", "lonely", cpu="200m"), old("b", "large", cpu="2")]
    made = planned(settings, kept, *nodes("b"), *pods)
    assert evicted(made) == {}
    assert tainted(made) == []


def test_under_used_node_keeps_its_soft_taint_between_two_rounds() -> None:
    """What was evicted in this round would come back before the next one."""
    settings = emptying(UNDER_20)
    soft = make_node("a", FLEET, taints=(SOFT,))
    pods = [old("a", "lonely", cpu="200m"), old("b", "large", cpu="2")]
    made = planned(settings, soft, *nodes("b"), *pods, last_descheduled_at=ago(5))
    assert evicted(made) == {}
    assert [action for action in made.actions if isinstance(action, TaintNode | UntaintNode)] == []


@pytest.mark.parametrize(
    "kept",
    [
        {"namespace": "kept"},
        {"owner": None},
        {"annotations": labelled(**{DO_NOT_DISRUPT: "true"})},
        {"priority": 2_000_000_000},
    ],
)
def test_node_that_cannot_become_empty_is_left_alone(kept: dict[str, Any]) -> None:
    """The node stays: its other pods would move for no saving, and its room is paid for."""
    settings = emptying(replace(UNDER_20, scope=PodScope(exclude=frozenset({"kept"}))))
    pods = [old("a", "moves", cpu="100m"), old("a", "stays", cpu="100m", **kept)]
    large = old("b", "large", cpu="2")
    assert tainted(planned(settings, *nodes("a", "b"), *pods, large)) == []
    soft = make_node("a", FLEET, taints=(SOFT,))
    assert evicted(planned(settings, soft, *nodes("b"), *pods, large)) == {}


@pytest.mark.parametrize(
    "passing",
    [
        {"owner": Owner(kind="Job", name="j", uid="j")},
        {"annotations": labelled(**{DO_NOT_DISRUPT: "4h"})},
    ],
)
def test_node_whose_pods_may_go_later_is_asked_to_stay_empty(passing: dict[str, Any]) -> None:
    """A Job ends by itself, and an annotation for some hours too: the node is empty then."""
    stays = old("a", "stays", cpu="100m", **passing)
    made = planned(emptying(UNDER_20), *nodes("a", "b"), stays, old("b", "large", cpu="2"))
    assert tainted(made) == ["a"]
    assert evicted(made) == {}
