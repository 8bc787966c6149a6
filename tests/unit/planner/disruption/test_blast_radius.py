"""Blast radius: never more of one controller's pods are moved within a time than allowed."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import EvictPod, TaintNode
from reconciler.model.cluster import Owner
from reconciler.model.frozen import Labels
from reconciler.model.plan import Plan
from reconciler.planner.disruption_settings import BlastRadius, ScaleInSettings
from tests.builders import ago, make_node, make_settings
from tests.unit.planner.disruption.scale_in.scene import (
    FLEET,
    drained,
    kept,
    on,
    planned,
    told,
    unneeded,
)

HURRIED = replace(FLEET, scale_in=ScaleInSettings(non_empty_at_once_max=10))
QUARTER = BlastRadius(pods=25, percent=True)


OLD = {
    "created_at": ago(86400),
    "started_at": ago(86400),
    "owner": Owner(kind="ReplicaSet", name="web"),
}


def limited(limit: BlastRadius | None, *objects: Any) -> Plan:
    """The plan under a blast radius."""
    return planned(make_settings(HURRIED, blast_radius=limit), *objects)


def replicas(node: str, count: int, first: int = 0, **changed: Any) -> list[Any]:
    """Old replicas of one ReplicaSet on a node."""
    changed = {**OLD, **changed}
    return [on(node, f"web-{first + n}", "100m", **changed) for n in range(count)]


@pytest.mark.parametrize(("moving", "goes"), [(2, ["a"]), (3, [])])
def test_node_stays_while_it_holds_more_than_the_share(moving: int, goes: list[str]) -> None:
    """A quarter of eight replicas is two."""
    pods = [*replicas("a", moving), *replicas("b", 8 - moving, 10), on("b", "busy", "2")]
    made = limited(QUARTER, unneeded("a", HURRIED), make_node("b", HURRIED), *pods)
    assert told(made, TaintNode) == goes
    assert kept(made).get("a") == (None if goes else "blast-radius")


def test_two_nodes_are_counted_together() -> None:
    """Each alone would be within the limit."""
    nodes = [unneeded("a", HURRIED), unneeded("b", HURRIED), make_node("c", HURRIED)]
    pods = [*replicas("a", 2), *replicas("b", 2, 10), *replicas("c", 4, 20), on("c", "busy", "2")]
    assert told(limited(None, *nodes, *pods), TaintNode) == ["a", "b"]
    made = limited(QUARTER, *nodes, *pods)
    assert told(made, TaintNode) == ["a"]
    assert told(made, EvictPod) == ["web-0", "web-1"]


@pytest.mark.parametrize(
    "recent",
    [
        {"started_at": ago(599)},
        {"created_at": ago(60), "started_at": ago(900)},
        {"deleting": True},
        {"node": None, "phase": "Pending"},
    ],
    ids=["placed", "placed where the clock is behind", "being-deleted", "waiting"],
)
def test_pods_that_moved_a_moment_ago_use_the_limit_up(recent: dict[str, Any]) -> None:
    """A rollout and a drain together would take half of the replicas at once."""
    nodes = [unneeded("a", HURRIED), make_node("b", HURRIED)]
    others = [*replicas("b", 5, 10), on("b", "busy", "2")]
    young = on(recent.pop("node", "b"), "web-99", "100m", **{**OLD, **recent})
    made = limited(QUARTER, *nodes, *replicas("a", 2), *others, young)
    assert kept(made)["a"] == "blast-radius"
    calm = limited(QUARTER, *nodes, *replicas("a", 2), *others, *replicas("b", 1, 99))
    assert told(calm, TaintNode) == ["a"]


@pytest.mark.parametrize(("a_drains", "goes"), [(True, []), (False, ["b"])])
def test_pods_of_a_drain_under_way_use_the_limit_up(a_drains: bool, goes: list[str]) -> None:
    """Their evictions were refused, or lost with a crash: all replicas would go at once."""
    a = drained("a", HURRIED, 5) if a_drains else make_node("a", HURRIED)
    nodes = [a, unneeded("b", HURRIED), make_node("c", HURRIED)]
    busy = () if a_drains else (on("a", "busy-a", "2"),)
    pods = [*replicas("a", 3), *replicas("b", 3, 10), *replicas("c", 6, 20), on("c", "busy", "2")]
    made = limited(QUARTER, *nodes, *pods, *busy)
    assert told(made, TaintNode) == goes
    assert kept(made).get("b") == (None if goes else "blast-radius")


def test_replica_sets_of_one_deployment_are_one_controller() -> None:
    """In the middle of a rollout each ReplicaSet has half of the pods, and would lose half."""
    nodes = [unneeded("a", HURRIED), make_node("b", HURRIED)]

    def of(template: str) -> dict[str, Any]:
        labels = Labels({"pod-template-hash": template})
        return {"owner": Owner(kind="ReplicaSet", name=f"web-{template}"), "labels": labels}

    pods = [*replicas("a", 1, **of("old")), *replicas("b", 7, 10, **of("old"))]
    rolled = replicas("b", 2, 30, **of("new"), started_at=ago(60))
    calm = limited(QUARTER, *nodes, *pods, on("b", "busy", "2"))
    assert told(calm, TaintNode) == ["a"]
    made = limited(QUARTER, *nodes, *pods, *rolled, on("b", "busy", "2"))
    assert told(made, TaintNode) == ["a"]
    made = limited(BlastRadius(pods=2), *nodes, *pods, *rolled, on("b", "busy", "2"))
    assert kept(made)["a"] == "blast-radius"


def test_single_replica_may_move() -> None:
    """A quarter of one is one: a node would be kept for each Deployment without a second pod."""
    nodes = [unneeded("a", HURRIED), make_node("b", HURRIED)]
    made = limited(QUARTER, *nodes, *replicas("a", 1), on("b", "busy", "2", owner="StatefulSet"))
    assert told(made, TaintNode) == ["a"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_pods_that_have_ended_are_no_replicas(phase: str) -> None:
    """Half of the replicas would go: those that were evicted for memory stay listed for hours."""
    nodes = [unneeded("a", HURRIED), make_node("b", HURRIED)]
    at_work = [*replicas("a", 2), *replicas("b", 2, 10), on("b", "busy", "2")]
    ended = replicas("b", 4, 20, phase=phase)
    assert kept(limited(QUARTER, *nodes, *at_work, *ended))["a"] == "blast-radius"
    deleted = replicas("b", 4, 30, phase=phase, deleting=True, deletion_at=ago(60))
    one = [*replicas("a", 1), *replicas("b", 3, 10), on("b", "busy", "2")]
    assert told(limited(QUARTER, *nodes, *one, *deleted), TaintNode) == ["a"]


def test_pod_without_a_controller_has_no_limit_and_ends_no_count() -> None:
    """One such pod in the list would end all planning, or lift the limit of those after it."""
    bare = replace(HURRIED, scale_in=ScaleInSettings(non_empty_at_once_max=10, move_bare_pods=True))
    nodes = [unneeded("a", bare), unneeded("c", bare), make_node("b", bare)]
    alone = on("a", "alone", "100m", **{**OLD, "owner": None})
    pods = [*replicas("c", 3), *replicas("b", 5, 10), on("b", "busy", "2")]
    settings = make_settings(bare, blast_radius=QUARTER)
    made = planned(settings, alone, *nodes, *pods)
    assert told(made, TaintNode) == ["a"]
    assert kept(made)["c"] == "blast-radius"
    moved = [*replicas("c", 2), *replicas("b", 1, 10, started_at=ago(60)), on("b", "busy", "2")]
    made = planned(replace(settings, blast_radius=BlastRadius(pods=2)), alone, *nodes, *moved)
    assert kept(made)["c"] == "blast-radius"
