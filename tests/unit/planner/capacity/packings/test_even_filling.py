"""Many small pods on equal nodes: as few nodes as there can be."""

from typing import Any

from reconciler.model.cluster import Pod
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.benchmarks.cases import CASES, Size
from tests.builders import (
    amounts,
    make_fleet_settings,
    make_option,
    make_pods,
    make_settings,
    make_snapshot,
    near,
)


def one_size(**changed: Any) -> FleetSettings:
    """A fleet of 4 CPUs, 16 GiB and 20 pods a node."""
    held = amounts(cpu="4", memory="16Gi", pods=20)
    return make_fleet_settings(options=[make_option()], allocatable=held, **changed)


def nodes_for(*pods: Pod) -> int:
    """New nodes that a plan asks for."""
    made = plan(make_snapshot(*pods), make_settings(one_size()))
    assert not made.unplaceable
    return sum(fleet.target for fleet in made.fleets)


def test_shapes_that_first_fit_packs_badly_take_the_least_nodes() -> None:
    """Small pods with much memory, packed last, would have nodes of their own: 8 % more cost."""
    snapshot, settings = CASES["estimator"].make(Size(pods=3000))
    made = plan(snapshot, settings)
    assert sum(fleet.target for fleet in made.fleets) == 99
    assert made.cost.gap == 0


def test_scarce_memory_decides_where_pods_ask_for_little_cpu() -> None:
    """Nodes would be counted by CPU and run out of memory."""
    light = make_pods(30, "light", cpu="100m", memory="2Gi")
    assert nodes_for(*light, *make_pods(30, "heavy", cpu="200m", memory="1Gi")) == 6


def test_maximum_of_the_fleet_stands_against_even_filling() -> None:
    """More nodes than max_capacity would be asked for."""
    pods = (*make_pods(40, "a", cpu="1"), *make_pods(40, "b", cpu="500m"))
    made = plan(make_snapshot(*pods), make_settings(one_size(max_capacity=3)))
    assert sum(fleet.target for fleet in made.fleets) == 3
    assert made.unplaceable


def test_pods_that_must_be_apart_are_not_filled_evenly() -> None:
    """Two pods that refuse each other would be promised one node."""
    apart = make_pods(
        5,
        "apart",
        cpu="100m",
        labels={"app": "x"},
        pod_anti_affinity=(near("kubernetes.io/hostname", app="x"),),
    )
    assert nodes_for(*apart, *make_pods(20, cpu="100m", memory="100Mi")) == 5
