"""Instances that a fleet without capacity has launched all the same: they are nodes to come."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.fleet import Fleet, Instance
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.planner import plan
from tests.builders import (
    HOME,
    ago,
    capacity_error,
    kept_proof,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pods,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.placed import raised

SHORT = make_fleet_settings("small", cpu=4)
OTHER = make_fleet_settings("medium", cpu=4, price="0.2")
SETTINGS = make_settings(SHORT, OTHER)
LACKING = {"launch_errors": (capacity_error(40),)}


def launched(live: Fleet, *names: str, **changed: Any) -> list[Instance]:
    """Instances of the fleet that EC2 launched half a minute ago, before they are nodes."""
    stated = {"state": "pending", "launched_at": ago(30), **changed}
    return [make_instance(make_node(name, SHORT), live, **stated) for name in names]


def bought(
    live: Fleet, *instances: Instance, waiting: int = 2, **changed: Any
) -> list[tuple[str, int, int]]:
    """The raises for so many pods of a node each, while one node of the fleet has joined."""
    node = make_node("joined", SHORT)
    cloud = make_cloud(live, make_fleet(OTHER), instances=(make_instance(node, live), *instances))
    full, *waits = make_pods(waiting + 1, cpu=4)
    runs = replace(full, node_name=node.name, phase="Running")
    return raised(plan(make_snapshot(node, runs, *waits, cloud=cloud, **changed), SETTINGS))


@pytest.mark.parametrize(
    "trouble",
    [LACKING, {"activity_status": "error"}, {"launches_halted": "its process Launch is suspended"}],
    ids=["capacity error", "activity status", "suspended"],
)
def test_pods_wait_for_instances_that_a_fleet_launched_before_it_could_launch_no_more(
    trouble: dict[str, Any],
) -> None:
    """One zone without capacity, and another fleet bought every node that had come up elsewhere."""
    live = make_fleet(SHORT, 3, **trouble)
    assert bought(live, *launched(live, "b", "c")) == []


def test_what_a_fleet_without_capacity_owes_is_bought_elsewhere() -> None:
    """Pods would wait for nodes that EC2 cannot launch."""
    live = make_fleet(SHORT, 4, **LACKING)
    found = bought(live, *launched(live, "b", "c"), waiting=3)
    assert found == [("primary-medium", 0, 1)]


def test_instances_that_ec2_counts_and_does_not_list_yet_are_awaited() -> None:
    """DescribeInstances shows a launch seconds after the fleet counts it."""
    live = make_fleet(SHORT, 3, fulfilled_capacity=3.0, **LACKING)
    assert bought(live) == []


@pytest.mark.parametrize(
    "lost",
    [
        {"state": "terminated", "launched_at": ago(3600)},
        {"state": "running", "launched_at": ago(3600)},
        {"leaving": True},
    ],
    ids=["ended", "never joined", "its group ends it"],
)
def test_instances_that_are_no_nodes_to_come_are_not_awaited(lost: dict[str, Any]) -> None:
    """EC2's figure lags: pods would wait for instances that it took back minutes ago."""
    live = make_fleet(SHORT, 3, fulfilled_capacity=3.0, **LACKING)
    assert bought(live, *launched(live, "b", "c", **lost)) == [("primary-medium", 0, 2)]


def test_instances_of_a_fleet_whose_last_ones_never_joined_are_not_awaited() -> None:
    """They are made like those that failed."""
    live = make_fleet(SHORT, 3)
    failing = SavedFleetState(
        fleet=SHORT.name, region=HOME, unavailable_until=ago(-200), failures=1, stuck_in_a_row=3
    )
    found = bought(live, *launched(live, "b", "c"), fleet_states=(failing,))
    assert found == [("primary-medium", 0, 2), ("primary-small", 3, 1)]


def test_instances_that_seem_to_be_of_another_cluster_are_not_awaited() -> None:
    """Nothing proves that they will be nodes of this one."""
    live = make_fleet(SHORT, 2, **LACKING)
    old = launched(live, "a", state="running", launched_at=ago(7200))
    young = launched(live, "b")
    cloud = make_cloud(live, make_fleet(OTHER), instances=(*old, *young))
    strange = kept_proof(live, uid="another")
    made = plan(make_snapshot(*make_pods(1, cpu=4), cloud=cloud, **strange), SETTINGS)
    assert raised(made) == [("primary-medium", 0, 1)]
