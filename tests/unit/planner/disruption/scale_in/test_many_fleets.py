"""Consolidation in a sector with hundreds of fleets: sizes, zones and price steps of each."""

import cProfile
import gc
import pstats
from collections.abc import Sequence
from decimal import Decimal
from math import log
from typing import Any

import pytest

from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, PlannerSettings
from tests.builders import (
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.consolidation import raised
from tests.unit.planner.disruption.scale_in.scene import kept, on, unneeded

EXPONENT_MAX = 0.9
"""The nodes stay the same, and most work is done for nodes: with a simulation for each node and
fleet it was 1.1, and 1.6 with a cost limit."""
FEW, MANY = 30, 120
NODES = 60


def made_of(
    fleets: Sequence[FleetSettings], *objects: Node | Pod, **changed: Any
) -> tuple[Snapshot, PlannerSettings]:
    """A cluster of these nodes and pods, with consolidation."""
    nodes = [each for each in objects if isinstance(each, Node)]
    counts = {fleet.name: 0 for fleet in fleets}
    for node in nodes:
        counts[node.labels["fleet"]] += 1
    lives = [make_fleet(fleet, counts[fleet.name]) for fleet in fleets]
    snapshot = make_snapshot(*objects, cloud=make_cloud_of(nodes, *lives), relists=2)
    return snapshot, make_settings(*fleets, consolidation=True, **changed)


def calls(count: int, limit: Decimal | None) -> int:
    """How many calls a plan takes for nodes that are replaced by no new one of so many fleets."""
    fleets = [
        make_fleet_settings(f"f{number}", price=str(Decimal("0.1") + Decimal(number) / 1000))
        for number in range(count)
    ]
    nodes = [
        make_node(f"n{n:02}", fleets[n * count // NODES], created_at=ago(90_000))
        for n in range(NODES)
    ]
    pods = [on(node.name, f"{node.name}-{n}", "1100m") for node in nodes for n in range(3)]
    return profiled(*made_of(fleets, *nodes, *pods, usd_per_hour_max=limit)).total_calls  # type: ignore[attr-defined,no-any-return]


def profiled(*world: Any) -> pstats.Stats:
    """What a plan takes."""
    plan(*world)  # fills the tables that plans share
    profile = cProfile.Profile()
    gc.disable()
    try:
        profile.runcall(plan, *world)
    finally:
        gc.enable()
    return pstats.Stats(profile)


@pytest.mark.parametrize("limit", [None, Decimal(100_000)])
def test_work_grows_no_faster_than_the_fleets(limit: Decimal | None) -> None:
    """A pod that came while a plan of 500 fleets was made waited for five seconds."""
    growth = log(calls(MANY, limit) / calls(FEW, limit)) / log(MANY / FEW)
    assert growth <= EXPONENT_MAX


def looks(count: int) -> int:
    """How often a plan asks whether a node drains, while each of so many fleets owes one."""
    fleets = [make_fleet_settings(f"f{number}") for number in range(count)]
    nodes = [make_node(f"n{n:03}", fleets[n % count]) for n in range(MANY)]
    lives = [make_fleet(fleet, MANY // count + 1) for fleet in fleets]
    snapshot = make_snapshot(*nodes, cloud=make_cloud_of(nodes, *lives), relists=2)
    found = profiled(snapshot, make_settings(*fleets)).get_stats_profile().func_profiles
    return int(found["is_draining"].ncalls)


def test_nodes_are_looked_at_no_more_often_where_more_fleets_owe_some() -> None:
    """All of them were looked at once for each such fleet: 800,000 times with 400 fleets."""
    assert looks(MANY) <= 2 * looks(FEW)


CHEAP = [make_fleet_settings(f"cheap-{number}", cpu=4, price=f"0.1{number}") for number in range(3)]
WIDE = make_fleet_settings("wide", cpu=8, price="0.20")
OLD = make_fleet_settings("old", cpu=16, price="0.80")


def replaced(*pods: Pod) -> Plan:
    """The plan for a node of the most expensive fleet with these pods."""
    return plan(*made_of([*CHEAP, WIDE, OLD], unneeded("old", OLD), *pods))


def test_fleet_of_another_size_is_asked_after_several_that_are_too_small() -> None:
    """Only those like one that was tried in vain are passed over."""
    made = replaced(on("old", "a", "3"), on("old", "b", "3"))
    assert raised(made) == [("primary-wide", 1, "consolidation")]


def test_fleet_with_the_label_that_a_pod_selects_is_asked_after_others_of_its_size() -> None:
    """Nodes of one size and price differ for the pods that select one of them."""
    made = replaced(on("old", cpu="3", node_selector={"fleet": "primary-cheap-2"}))
    assert raised(made) == [("primary-cheap-2", 1, "consolidation")]
    assert kept(made)["old"] == "consolidation"
