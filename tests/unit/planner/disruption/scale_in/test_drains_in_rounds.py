"""Drains whose budgets allow some pods now and the rest later (docs/disruption-limits.md)."""

from dataclasses import replace

import pytest

from reconciler.model.actions import DRAIN_PROGRESS, EvictPod, TaintNode, UntaintNode
from reconciler.model.cluster import PodDisruptionBudget
from reconciler.model.plan import Plan
from tests.builders import make_node, make_pod, selecting
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    drained,
    full,
    kept,
    make_scene_fleet,
    on,
    planned,
    told,
    unneeded,
)

WEB_BUDGET = PodDisruptionBudget(
    namespace="ns", name="w", selector=selecting(app="w"), disruptions_allowed=1
)


def in_rounds(
    progress: str, *, started: float = 600, evict: int = 1, ending: int = 0, allowed: int = 1
) -> Plan:
    """A node whose drain in rounds began some seconds ago, with pods of a budget on it."""
    fleet = make_scene_fleet()
    node = drained("a", fleet, started, annotations={DRAIN_PROGRESS: progress})
    labels = {"app": "w"}
    waiting = [on("a", f"w{n}", "100m", labels=labels) for n in range(evict)]
    going = [on("a", f"g{n}", "100m", labels=labels, deleting=True) for n in range(ending)]
    budget = replace(WEB_BUDGET, disruptions_allowed=allowed)
    nodes = (node, make_node("b", fleet))
    return planned(fleet, *nodes, *waiting, *going, full("b"), budgets=(budget,))


def test_drain_in_rounds_notes_how_many_it_takes_when_it_begins() -> None:
    """The next plan, or another replica's, would give it the time of one round."""
    fleet = make_scene_fleet()
    pods = [on("a", f"w{n}", "100m", labels={"app": "w"}) for n in range(2)]
    nodes = [unneeded("a", fleet), make_node("b", fleet)]
    made = planned(fleet, *nodes, *pods, full("b"), budgets=(WEB_BUDGET,))
    assert annotations_set(made) == {
        ("a", "drain-started", "2026-01-31T12:00:00Z"),
        ("a", "drain-progress", "2026-01-31T12:00:00Z/2/2/0"),
    }
    alone = planned(fleet, *nodes, pods[0], full("b"), budgets=(WEB_BUDGET,))
    assert annotations_set(alone) == {("a", "drain-started", "2026-01-31T12:00:00Z")}


@pytest.mark.parametrize(("allowed", "leaves"), [(3, ["a"]), (1, [])])
def test_pods_of_later_rounds_find_room_after_the_others(allowed: int, leaves: list[str]) -> None:
    """The pod without a budget goes first, to the room of one that waits for the third round."""
    fleet = make_scene_fleet(utilization_threshold=0.95)
    pods = [on("a", f"w{n}", "1", labels={"app": "w"}) for n in range(3)]
    nodes = (unneeded("a", fleet), make_node("b", fleet), make_node("c", fleet))
    others = [
        make_pod("b-own", node="b", cpu="1750m", memory="4Gi", owner="Job"),
        on("c", "c-own", "3", owner="Job"),
    ]
    budget = replace(WEB_BUDGET, disruptions_allowed=allowed)
    made = planned(fleet, *nodes, *pods, on("a", "z", "250m"), *others, budgets=(budget,))
    assert told(made, TaintNode) == leaves


def test_drain_in_rounds_goes_on_as_the_budget_allows_again() -> None:
    """Its second pod would stay, and the node be given back with half of its pods gone."""
    made = in_rounds("2026-01-31T11:59:00Z/2/1/1", started=121)
    assert told(made, EvictPod) == ["w0"]
    assert ("a", "drain-progress", "2026-01-31T12:00:00Z/2/1/0") in annotations_set(made)


@pytest.mark.parametrize(
    ("noted", "ending", "goes_on"),
    [
        ("11:58:01Z/3/2/0", 0, True),
        ("11:57:59Z/3/2/0", 0, False),
        ("11:56:01Z/3/2/1", 1, True),
        ("11:55:59Z/3/2/1", 1, False),
        ("11:50:00Z/3/3/0", 0, True),
        ("11:50:00Z/3/2/1", 0, True),
    ],
)
def test_drain_in_rounds_without_progress_is_given_up(
    noted: str, ending: int, goes_on: bool
) -> None:
    """A budget that never allows the rest would keep a node closed for long."""
    progress = f"2026-01-31T{noted}"
    made = in_rounds(progress, started=660, evict=2, ending=ending, allowed=0)
    assert told(made, UntaintNode) == ([] if goes_on else ["a"])
    assert told(made, EvictPod) == []
    assert (kept(made).get("a") == "budget") is goes_on


@pytest.mark.parametrize(("seconds", "goes_on"), [(479, True), (481, False)])
def test_drain_in_rounds_has_the_time_of_its_rounds(seconds: float, goes_on: bool) -> None:
    """A pod that leaves now and then would stretch a drain over hours."""
    made = in_rounds("2026-01-31T11:59:30Z/2/1/0", started=seconds)
    assert told(made, UntaintNode) == ([] if goes_on else ["a"])
    if not goes_on:
        assert ("a", "drain-progress", None) in annotations_set(made)


@pytest.mark.parametrize("noted", ["", "nonsense", "2026-01-31T11:00:00Z/2", "x/-1/2/3", "x/2/1/0"])
def test_progress_that_cannot_be_read_is_noted_again(noted: str) -> None:
    """A drain without a readable mark would never time out, or at once."""
    made = in_rounds(noted, started=200)
    assert told(made, EvictPod) == ["w0"]
    assert ("a", "drain-progress", "2026-01-31T12:00:00Z/3/1/0") in annotations_set(made)
