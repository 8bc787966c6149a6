"""Consolidation moves no pods to expensive nodes that go by themselves once their Jobs end."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import TaintNode
from reconciler.model.cluster import Node, Pod
from tests.builders import ago, make_node
from tests.unit.planner.disruption.scale_in.consolidation import LARGE, SMALL, planned
from tests.unit.planner.disruption.scale_in.scene import kept, on, told, unneeded

YOUNG: dict[str, Any] = {"created_at": ago(900)}


def well_used(name: str = "s") -> tuple[Node, Pod]:
    """A node of 4 CPU that only consolidation would empty."""
    return unneeded(name, SMALL), on(name, cpu="3")


@pytest.mark.parametrize("job", [{"owner": "Job"}, {"owner": "Pod", "ends_by_itself": True}])
def test_pods_stay_where_they_are_while_only_jobs_keep_the_other_node(job: dict[str, Any]) -> None:
    """They would keep a node at 0.40 USD/h that is about to go, to save one at 0.10."""
    made = planned(*well_used(), make_node("jobs", LARGE, **YOUNG), on("jobs", **job))
    assert told(made, TaintNode) == []
    (why,) = (each.detail for each in made.kept if each.node == "s")
    assert why == (
        "its pods would move to 1 node at 0.4 USD/h with only pods that run to completion, "
        "and that would be removed when these have ended"
    )


@pytest.mark.parametrize(
    "others",
    [
        (make_node("there", LARGE, created_at=ago(3600)), on("there", owner="Job")),
        (make_node("there", LARGE, **YOUNG), on("there", cpu="10")),
        (make_node("there", LARGE, **YOUNG), on("there", owner="Job"), on("there", "web")),
    ],
    ids=["jobs-for-an-hour", "service", "job-and-service"],
)
def test_they_move_to_a_node_that_stays(others: tuple[Node | Pod, ...]) -> None:
    """It has been there for an hour, or other pods keep it."""
    made = planned(*well_used(), *others)
    assert told(made, TaintNode) == ["s"]


def test_they_move_to_a_cheaper_node_whatever_runs_there() -> None:
    """The more expensive one goes now, the other one stays in its place."""
    large = unneeded("l", LARGE), on("l", cpu="1"), on("l", "more", cpu="1")
    job = make_node("jobs", SMALL, **YOUNG), on("jobs", owner="Job")
    made = planned(*large, on("l", "most", cpu="1"), *job, small=1)
    assert told(made, TaintNode) == ["l"]


def test_several_nodes_that_would_be_kept_count_together() -> None:
    """Each is cheaper than the node that would be saved; both are not."""
    middle = [make_node(f"jobs-{n}", SMALL, **YOUNG) for n in range(5)]
    jobs = [on(node.name, owner="Job", cpu="1") for node in middle]
    pods = [on("l", f"web-{n}", cpu="2900m") for n in range(5)]
    made = planned(unneeded("l", LARGE), *pods, *middle, *jobs, small=5)
    assert told(made, TaintNode) == []
    assert kept(made)["l"] == "consolidation"


def test_a_node_that_is_needed_at_its_minimum_is_no_loss() -> None:
    """It stays in any case."""
    large = replace(LARGE, min_capacity=1)
    made = planned(
        *well_used(),
        make_node("jobs", large, **YOUNG),
        on("jobs", owner="Job"),
        fleets=(SMALL, large),
        small=1,
    )
    assert told(made, TaintNode) == ["s"]


def test_little_used_nodes_go_as_ever() -> None:
    """What is below the threshold is not weighed against other nodes."""
    few = unneeded("s", SMALL), on("s", cpu="500m")
    made = planned(*few, make_node("jobs", LARGE, **YOUNG), on("jobs", owner="Job"), small=1)
    assert told(made, TaintNode) == ["s"]
