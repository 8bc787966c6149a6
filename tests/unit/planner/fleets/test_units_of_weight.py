"""A fleet whose target counts units of weight: its instances count, and its target does not."""

from typing import Any

import pytest

from reconciler.model.actions import SetCapacity
from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

UNITS = "its target counts units of WeightedCapacity, not nodes"
SMALL = make_fleet_settings(price="0.25", spot=False)
OTHER = make_fleet_settings(sector="web", price="0.50", spot=False)
TAKEN = make_pod("taken", node="n0", cpu=3)


def planned(*objects: Node | Pod, weight: int = 4, **changed: Any) -> Plan:
    """The plan for one node that fulfils all units of its fleet."""
    found = (make_node("n0", SMALL), TAKEN, *objects)
    live = make_fleet(
        SMALL,
        weight,
        fulfilled_capacity=float(weight),
        counts_units=True,
        launches_halted=UNITS,
        removals_halted=UNITS,
    )
    cloud = make_cloud_of(found, live, make_fleet(OTHER))
    return plan(make_snapshot(*found, cloud=cloud), make_settings(SMALL, OTHER, **changed))


def test_instances_are_counted_and_priced_and_nothing_is_said_to_launch() -> None:
    """One node that weighs 4 is 0.25 USD an hour, and three more never come."""
    made = planned()
    (shown,) = (fleet for fleet in made.fleets if fleet.fleet == SMALL.name)
    assert (shown.current, shown.target, shown.joined, shown.launching) == (1, 1, 1, 0)
    assert (made.cost.hourly_usd_before, made.cost.hourly_usd_after) == (0.25, 0.25)
    assert made.actions == ()


def test_pods_are_not_promised_to_nodes_that_never_come() -> None:
    """They would wait for ever for what is only a weight."""
    made = planned(make_pod("waits", cpu=3, sector="primary"))
    assert not made.placements
    assert [unplaceable.pod.name for unplaceable in made.unplaceable] == ["waits"]


@pytest.mark.parametrize("weight", [1, 4])
def test_limit_of_money_counts_what_runs(weight: int) -> None:
    """Pods of other fleets would wait for money that nobody spends."""
    pod = make_pod("web", cpu=3, sector="web")
    made = planned(pod, weight=weight, usd_per_hour_max=0.8)
    raised = [(a.fleet, a.to_capacity) for a in made.actions if isinstance(a, SetCapacity)]
    assert raised == [(OTHER.name, 1)]


def test_it_is_held_at_no_minimum() -> None:
    """It is asked for nothing: its minimum would be unmet for ever, and MinSize counts units."""
    three = make_fleet_settings(price="0.25", spot=False, min_capacity=3)
    live = make_fleet(
        three,
        4,
        counts_units=True,
        launches_halted=UNITS,
        removals_halted=UNITS,
        min_size=8,
        max_size=16,
    )
    node = make_node("n0", three)
    made = plan(make_snapshot(node, cloud=make_cloud_of((node,), live)), make_settings(three))
    assert [(fleet.joined, fleet.min) for fleet in made.fleets] == [(1, 0)]
    assert made.actions == ()
