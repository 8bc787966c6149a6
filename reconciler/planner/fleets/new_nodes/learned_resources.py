"""What a fleet's nodes really offer: seen on its nodes, and remembered when the last is gone.

An image, a kubelet's reservations or a smaller machine may leave less than the config suggests. If
it were forgotten with the last node, it would be found out again and again: consolidation would buy
a node that the pods of a more expensive one do not fit on, and end it as idle.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.cluster import NO_RESOURCES, Resources
from reconciler.model.fleet import Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.fleets.inventory import FleetStatus, Inventory
from reconciler.planner.fleets.live_fleet import is_of_template
from reconciler.planner.fleets.version import has_changed, to_note, version_of
from reconciler.planner.placement.kinds import INSTANCE_TYPE

FROM_THE_START: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
"""Resources that kubelet states from its start; devices come later, and may be missing for a
while."""
REMEMBERED_FOR: Final = timedelta(days=1)
"""After this long the estimate counts again: reservations can change without a trace here."""


def with_learned(inventory: Inventory, at: datetime) -> Inventory:
    """Return the inventory with what was seen and what is remembered about each fleet's nodes.

    What is remembered changes only if EC2 shows the fleet.
    """
    saved_states = {
        (fleet_state.fleet, fleet_state.region): fleet_state
        for fleet_state in inventory.fleet_states
    }
    fleets: list[FleetStatus] = []
    for status in inventory.fleets:
        by_type = _seen_by_type(status, inventory.instance_of_node)
        seen = least_of(by_type.values()) if by_type else None
        place = (status.key.name, status.key.region)
        if not by_type and place not in saved_states:
            fleets.append(status)
            continue
        before = saved_states.get(place) or SavedFleetState(fleet=place[0], region=place[1])
        after = before
        version = "" if status.live is None else version_of(status)
        # While the template is not known, nodes of an older one look like those of the present one.
        if version and version == to_note(version, before.learned_version):
            after = _learning(before, seen, version, at)
        if after != before:
            saved_states[place] = after
        learned = _lasting(after.learned)
        if by_type or learned:
            fleets.append(replace(status, seen=seen, seen_by_type=by_type, learned=learned))
        else:
            fleets.append(status)
    return replace(
        inventory,
        fleets=tuple(fleets),
        fleet_states=tuple(saved_states[place] for place in sorted(saved_states)),
    )


def least_of(amounts: Iterable[Resources]) -> Resources:
    """Return per resource the least of all; a resource that one lacks is left out.

    Args:
        amounts: At least one.
    """
    distinct = set(amounts)
    names = set.intersection(*map(set, distinct))
    return FrozenMap((name, min([a[name] for a in distinct])) for name in sorted(names))


def _seen_by_type(
    status: FleetStatus, instances: Mapping[NodeName, Instance]
) -> FrozenMap[str, Resources]:
    """Return by type the least allocatable of Ready nodes of the present launch template."""
    known: dict[str, set[Resources]] = {}
    for node in status.nodes:
        if (
            node.ready
            and node.allocatable
            and not node.unreadable
            and is_of_template(status.live, instances.get(node.name))
        ):
            known.setdefault(node.labels.get(INSTANCE_TYPE, ""), set()).add(node.allocatable)
    return FrozenMap((name, least_of(amounts)) for name, amounts in known.items())


def _learning(
    saved: SavedFleetState, seen: Resources | None, version: str, at: datetime
) -> SavedFleetState:
    """Return what is known after this snapshot: the least of what was seen."""
    shown = NO_RESOURCES if seen is None else _lasting(seen)
    before = NO_RESOURCES if has_changed(version, saved.learned_version) else saved.learned
    least = least_of([before, shown]) if before and shown else before or shown
    since = saved.unseen_since or at
    if least == shown or at - since > REMEMBERED_FOR:
        # If as little is seen now, or nothing was seen for long.
        version = version if shown else ""
        return replace(saved, learned=shown, learned_version=version, unseen_since=None)
    return replace(saved, learned=least, learned_version=version, unseen_since=since)


def _lasting(offered: Resources) -> Resources:
    return FrozenMap((name, offered[name]) for name in sorted(FROM_THE_START.intersection(offered)))
