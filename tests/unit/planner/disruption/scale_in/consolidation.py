"""Clusters of two fleets or more, with consolidation on."""

from typing import Any

from reconciler.model.actions import SetCapacity
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_settings,
    make_snapshot,
)

LARGE = make_fleet_settings("large", cpu=16, memory="64Gi", price="0.40")
SMALL = make_fleet_settings("small", price="0.10")


def planned(
    *objects: Any,
    small: int = 0,
    launching: int = 0,
    fleets: tuple[FleetSettings, ...] = (SMALL, LARGE),
    **changed: Any,
) -> Plan:
    """The plan with consolidation on.

    Args:
        objects: What the cluster has.
        small: The target of the first fleet.
        launching: Nodes that the other fleets' targets ask for beside those that are there.
        fleets: All of them.
        changed: `server_time` and `budgets` of the snapshot; else keywords of PlannerSettings.
    """
    first, *others = fleets
    nodes = [o for o in objects if hasattr(o, "allocatable")]
    lives = {first.name: make_fleet(first, small)}
    for fleet in others:
        there = sum(n.labels.get("fleet") == fleet.name for n in nodes)
        lives[fleet.name] = make_fleet(fleet, there + launching)
    state = {key: changed.pop(key) for key in ("server_time", "budgets") if key in changed}
    settings = make_settings(*fleets, consolidation=changed.pop("consolidation", True), **changed)
    cloud = make_cloud_of(nodes, *lives.values())
    return plan(make_snapshot(*objects, cloud=cloud, **state), settings)


def raised(made: Plan) -> list[tuple[str, int, str]]:
    """Fleet, target and policy of every raise."""
    return [(a.fleet, a.to_capacity, a.policy) for a in made.actions if isinstance(a, SetCapacity)]
