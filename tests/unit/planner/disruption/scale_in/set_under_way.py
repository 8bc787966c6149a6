"""A replacement set under way: three small nodes whose pods are to move to one of medium size."""

from dataclasses import replace
from typing import Any

from reconciler.model.actions import REPLACEMENT_SET
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetKey
from reconciler.model.plan import Plan
from reconciler.planner.disruption.drains.replacement_sets import encode
from tests.builders import HOME, ago, make_fleet_settings, make_node
from tests.unit.planner.disruption.scale_in.consolidation import SMALL
from tests.unit.planner.disruption.scale_in.scene import annotations_set, on

MID = make_fleet_settings("mid", cpu=8, memory="32Gi", price="0.16")
FLEETS = (MID, SMALL)
EXPIRED = replace(SMALL, expire_after_seconds=1800)
NAMES = ("a", "b", "c")


def decided(seconds: float, fleet: str = "primary-mid") -> str:
    """Return the annotation of a set that was decided so long ago."""
    return encode(ago(seconds), {FleetKey(name=fleet, region=HOME): 1}, 140_000_000)


def nodes(seconds: float, **changed: Any) -> list[Node]:
    """Return the nodes of a set that was decided so long ago."""
    noted = FrozenMap({REPLACEMENT_SET: decided(seconds)})
    return [make_node(name, SMALL, annotations=noted, **changed) for name in NAMES]


def pods(cpu: str = "2500m") -> list[Pod]:
    """Return a pod for each of them."""
    return [on(name, cpu=cpu) for name in NAMES]


def came(seconds: float) -> Node:
    """Return the new node, which joined so long ago."""
    return make_node("new", MID, created_at=ago(seconds), ready_changed_at=ago(seconds - 10))


def given_up(made: Plan) -> set[str]:
    """Return the nodes whose set the plan gives up."""
    return {n for n, key, value in annotations_set(made) if key == "replacement-set" and not value}
