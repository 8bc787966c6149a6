"""An idle node waits for pods of a more expensive one that limits on pods keep for minutes."""

from dataclasses import replace

import pytest

from reconciler.model.actions import EvictPod, TaintNode
from reconciler.model.cluster import Owner, PodDisruptionBudget
from reconciler.model.ids import NodeName
from reconciler.planner.disruption_settings import BlastRadius
from tests.builders import ago, labelled, make_node, make_pod, selecting
from tests.unit.planner.disruption.scale_in.consolidation import LARGE, SMALL, planned
from tests.unit.planner.disruption.scale_in.scene import drained, kept, on, told, unneeded

WEB = labelled(app="web")


def budget(allowed: int) -> PodDisruptionBudget:
    """A budget over the pods of one application."""
    return PodDisruptionBudget(
        namespace="ns", name="web", selector=selecting(app="web"), disruptions_allowed=allowed
    )


@pytest.mark.parametrize(
    ("age", "goes"), [(60, []), (3600, ["s"])], ids=["just created", "unhealthy for long"]
)
def test_idle_node_waits_while_moved_pods_use_a_budget_up(age: int, goes: list[str]) -> None:
    """It would be ended, and bought again as soon as the pods that were moved are ready."""
    away = make_pod("away", labels=WEB, ready=False, created_at=ago(age))
    held = on("l", cpu="3", labels=WEB, ready=True)
    nodes = unneeded("l", LARGE), unneeded("s", SMALL), make_node("full", SMALL)
    there = replace(away, node_name=NodeName("full"), phase="Running")
    pods = held, there, on("full", cpu="3500m", owner="Job")
    made = planned(*nodes, *pods, small=2, budgets=(budget(0),))
    assert told(made, TaintNode) == goes
    assert kept(made)["l"] == "budget"


def test_idle_node_waits_for_no_budget_that_allows_nothing_when_young_pods_are_healthy() -> None:
    """With maxUnavailable 0 it waited for as long as a pod of that budget was young."""
    never = replace(budget(0), current_healthy=1, desired_healthy=2)
    young = on("full", "young", "100m", labels=WEB, ready=False, created_at=ago(60))
    nodes = unneeded("l", LARGE), unneeded("s", SMALL), make_node("full", SMALL)
    pods = on("l", cpu="3", labels=WEB, ready=True), young, on("full", cpu="3500m", owner="Job")
    assert told(planned(*nodes, *pods, small=2, budgets=(never,)), TaintNode) == ["s"]


@pytest.mark.parametrize(
    ("limit", "goes"),
    [
        pytest.param(BlastRadius(pods=1), [], id="passes"),
        pytest.param(BlastRadius(pods=1, per_seconds=7200), ["s"], id="passes in hours"),
        pytest.param(BlastRadius(pods=0), ["s"], id="never passes"),
    ],
)
def test_idle_node_waits_while_the_blast_radius_is_used_up(
    limit: BlastRadius, goes: list[str]
) -> None:
    """It would be ended, and bought again when the pods that were moved have been there so long."""
    owner = Owner(kind="StatefulSet", name="web", uid="web")
    moved = on("full", "web-1", owner=owner, started_at=ago(60), created_at=ago(60))
    stays = on("l", "web-0", "3", owner=owner)
    nodes = unneeded("l", LARGE), unneeded("s", SMALL), make_node("full", SMALL)
    others = on("full", cpu="3500m", owner="Job")
    made = planned(*nodes, stays, moved, others, small=2, blast_radius=limit)
    assert told(made, TaintNode) == goes
    assert kept(made)["l"] == "blast-radius"


@pytest.mark.parametrize(
    ("age", "goes"), [(60, []), (3600, ["s"])], ids=["just created", "waits for long"]
)
def test_idle_node_waits_for_no_blast_radius_that_a_stuck_rollout_uses_up(
    age: int, goes: list[str]
) -> None:
    """A pod that fits nowhere may wait for days, and counts as moved for as long."""
    owner = Owner(kind="StatefulSet", name="web", uid="web")
    waits = make_pod("web-1", owner=owner, cpu="100", created_at=ago(age))
    stays = on("l", "web-0", "3", owner=owner)
    nodes = unneeded("l", LARGE), unneeded("s", SMALL)
    made = planned(*nodes, stays, waits, small=1, blast_radius=BlastRadius(pods=1))
    assert told(made, TaintNode) == goes
    assert kept(made)["l"] == "blast-radius"


def test_idle_node_waits_while_this_plan_uses_a_budget_up() -> None:
    """The pods that it evicts off another node are no more than a few seconds away."""
    nodes = unneeded("l", LARGE), unneeded("s", SMALL), make_node("full", SMALL)
    drain = drained("m", LARGE), on("m", cpu="400m", labels=WEB, ready=True)
    pods = on("l", cpu="3", labels=WEB, ready=True), on("full", cpu="3500m", owner="Job")
    made = planned(*nodes, *drain, *pods, small=2, budgets=(budget(1),))
    assert told(made, EvictPod) == ["on-m"]
    assert told(made, TaintNode) == []
    assert [kept(made)[name] for name in ("l", "s")] == ["budget", "consolidation"]
