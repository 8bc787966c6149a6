"""Stand-ins: on-demand nodes that were bought because a spot fleet was unavailable.

The node itself has the name of the spot fleet, in the annotation `fallback-from`, which is written
while the node is young. A node counts as a stand-in if its instance was launched while a spot fleet
of its sector and region, with `spot_fallback: on-demand`, was unavailable: spot nodes are cheaper,
so it would have come from there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.actions import FALLBACK_FROM
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, Region
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.fleets.inventory import FleetStatus, Inventory


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """An on-demand node that stands in for one of a spot fleet."""

    node: Node
    key: FleetKey
    """Its own fleet."""
    instead_of: FleetKey
    """The spot fleet."""


def find_stand_ins(inventory: Inventory, at: datetime, young_seconds: float) -> list[StandIn]:
    """Return the nodes that stand in for spot nodes: annotated ones, and new ones, sorted by name.

    An annotation that names no such spot fleet of the node's sector and region is ignored.

    Args:
        inventory: All fleets.
        at: The time of the plan.
        young_seconds: Older nodes without the annotation are none.
    """
    found: list[StandIn] = []
    saved_states = {
        (fleet_state.fleet, fleet_state.region): fleet_state
        for fleet_state in inventory.fleet_states
    }
    for status in inventory.fleets:
        if status.settings.spot or status.settings.departing or not status.nodes:
            continue
        spot = [fleet for fleet in inventory.fleets if _may_fall_back(fleet, status)]
        names = {each.key.name: each.key for each in spot}
        extra = status.joined_or_launching > status.min
        for node in status.nodes if spot else ():
            if FALLBACK_FROM in node.annotations:
                key = names.get(node.annotations[FALLBACK_FROM])
            elif extra and _is_young(node, at, young_seconds):
                launched = _launched_at(node, inventory, at)
                key = next(_unavailable_then(spot, saved_states, launched), None)
            else:
                key = None
            if key is not None:
                found.append(StandIn(node=node, key=status.key, instead_of=key))
    return sorted(found, key=lambda each: each.node.name)


def _is_young(node: Node, at: datetime, young_seconds: float) -> bool:
    created = node.created_at
    return created is not None and at - created < timedelta(seconds=young_seconds)


def _launched_at(node: Node, inventory: Inventory, at: datetime) -> datetime:
    """Return when the node's instance was launched; the best guess if EC2 does not show it."""
    instance = inventory.instance_of_node.get(node.name)
    launched = instance.launched_at if instance is not None else None
    return launched or node.created_at or at


def _may_fall_back(spot: FleetStatus, status: FleetStatus) -> bool:
    """Return whether demand of a spot fleet may be served by this on-demand fleet."""
    return (
        spot.settings.spot
        and spot.settings.spot_fallback
        and not spot.settings.departing
        and spot.settings.sector == status.settings.sector
        and spot.key.region == status.key.region
    )


def _unavailable_then(
    spot: Sequence[FleetStatus],
    saved_states: Mapping[tuple[str, Region], SavedFleetState],
    launched: datetime,
) -> Iterator[FleetKey]:
    """Yield the fleets that were unavailable at a time, in the order of the config."""
    for status in spot:
        saved = saved_states.get((status.key.name, status.key.region))
        until = saved.unavailable_until if saved else None
        since = saved.last_error_at if saved and saved.failures <= 1 else None
        since = since or (saved.below_target_since if saved else None)
        rested = until is not None and launched <= until
        if (rested or status.unavailable) and (since is None or since <= launched):
            yield status.key
