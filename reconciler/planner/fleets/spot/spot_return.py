"""Spot return: on-demand nodes that stand in for spot nodes are replaced once spot is back.

A spot fleet is back when it is available and had no error for `spot_return.stable_for`. Its
stand-ins are replaced in batches, one an hour. The nodes of a batch carry the annotation
`SPOT_RETURN` with the time at which the batch began; when the last one began is saved with the spot
fleet's state (`SavedFleetState.spot_return_at`), as nodes that left show nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.actions import FALLBACK_FROM, SPOT_RETURN
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.text import counted_noun, duration, parse_rfc3339
from reconciler.planner.clocks import is_beyond_skew
from reconciler.planner.fleets.inventory import FleetStatus, Inventory
from reconciler.planner.fleets.spot.stand_ins import StandIn, find_stand_ins
from reconciler.planner.fleets.updates.outdated import Outdated
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.settings import PlannerSettings

BATCH_EVERY: Final = timedelta(hours=1)
"""The time from one batch to the next; a node that could not leave by then is in no batch any
more."""
HEADROOM_WAITS: Final = (
    "it holds headroom, and may not be removed now or replaced by a cheaper node"
)
"""Why such a stand-in stays.

It is in no batch: headroom moves by itself, without a drain (`planner.policies.headroom`).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotReturn:
    """The nodes that stand in for nodes of one spot fleet, and which of them are replaced now."""

    key: FleetKey
    """The spot fleet."""
    nodes: tuple[StandIn, ...]
    """All nodes that stand in for it."""
    batch: Mapping[NodeName, datetime]
    """Those that are being replaced, with the time at which their batch began."""
    waits: str
    """Why no batch may begin now, in words; empty if one may."""


def with_spot_returns(
    inventory: Inventory, settings: PlannerSettings, at: datetime
) -> tuple[Inventory, tuple[SpotReturn, ...]]:
    """Find the spot fleets whose stand-ins are replaced; the nodes of their batches are outdated.

    Args:
        inventory: All fleets.
        settings: The sector config, resolved.
        at: The time of the plan.

    Returns:
        The inventory with these nodes and what is to be remembered, and the fleets by name. While
        `spot_return` is off there are none, and nothing is changed.
    """
    if settings.spot_return is None:
        return inventory, ()
    stable = timedelta(seconds=settings.spot_return.stable_seconds)
    nodes: dict[FleetKey, list[StandIn]] = {}
    for stand_in in find_stand_ins(inventory, at, settings.instance_init_seconds):
        if FALLBACK_FROM in stand_in.node.annotations:
            nodes.setdefault(stand_in.instead_of, []).append(stand_in)
    saved_states = {
        (fleet_state.fleet, fleet_state.region): fleet_state
        for fleet_state in inventory.fleet_states
    }
    statuses = {status.key: status for status in inventory.fleets}
    outdated = dict(inventory.outdated)
    spot_returns: list[SpotReturn] = []
    for key, stand_ins in sorted(nodes.items()):
        place = (key.name, key.region)
        before = saved_states.get(place, SavedFleetState(fleet=key.name, region=key.region))
        trouble = _why_in_trouble(statuses[key], before, stable, at)
        batch = _batch(stand_ins, at, resting=bool(trouble))
        trouble = trouble or _why_short(key, before)
        last = _last_batch(before, batch, at)
        if last != before.spot_return_at:
            saved_states[place] = replace(before, spot_return_at=last)
        waits = trouble or _waits(batch, last, at)
        spot_returns.append(SpotReturn(key=key, nodes=tuple(stand_ins), batch=batch, waits=waits))
        for name, began in batch.items():
            outdated.setdefault(name, chosen_to_return(key, began))
    changed = replace(
        inventory,
        outdated=dict(sorted(outdated.items())),
        fleet_states=tuple(saved_states[place] for place in sorted(saved_states)),
    )
    return changed, tuple(spot_returns)


def _batch(
    stand_ins: Iterable[StandIn], at: datetime, *, resting: bool
) -> dict[NodeName, datetime]:
    """Return the stand-ins that are being replaced, and when their batch began.

    Args:
        stand_ins: All stand-ins of one spot fleet.
        at: The time of the plan.
        resting: Whether the spot fleet is not back: then only drains that have begun go on.
    """
    return {
        stand_in.node.name: began
        for stand_in in stand_ins
        if (began := _began(stand_in.node, at)) is not None
        and (is_draining(stand_in.node) or (not resting and at - began < BATCH_EVERY))
    }


def chosen_to_return(spot: FleetKey, began: datetime) -> Outdated:
    """Return why a node that stands in for one of the spot fleet is to be replaced.

    Args:
        spot: The spot fleet.
        began: When the node's batch begins.
    """
    return Outdated(
        reason="spot-reschedule",
        policy="spot-return",
        because=f"it stands in for a node of {spot.name}, which is available again",
        since=began,
        only_for_cheaper_spot=True,
    )


def _why_in_trouble(
    status: FleetStatus, saved: SavedFleetState, stable: timedelta, at: datetime
) -> str:
    """Return why EC2 cannot give the spot fleet nodes, which ends a batch; empty if it can."""
    if status.unavailable:
        return f"{status.key.name} is unavailable: {status.unavailable}"
    errors = (saved.last_error_at, saved.last_stuck_launched_at)
    last = max((moment for moment in errors if moment is not None), default=None)
    if last is not None and at - last < stable:
        left = duration(stable - (at - last))
        return f"{status.key.name} had its last error {duration(at - last)} ago: {left} to go"
    return ""


def _why_short(key: FleetKey, saved: SavedFleetState) -> str:
    """Return why no batch begins while EC2 holds less than the target; empty if it holds all.

    It ends no batch: the nodes that the batch itself asked for are short until EC2 launches them.
    If they stay short the fleet becomes unavailable.
    """
    short = saved.below_target_since is not None
    return f"EC2 holds less of {key.name} than its target" if short else ""


def _began(node: Node, at: datetime) -> datetime | None:
    """Return when the node's batch began; None if it is in none.

    A future time counts as now if the clocks may differ by that much. A later one would keep the
    node in its batch until then: it counts as none, and the annotation is removed.
    """
    noted = parse_rfc3339(node.annotations.get(SPOT_RETURN, ""))
    return None if noted is None or is_beyond_skew(noted, at) else min(noted, at)


def _last_batch(
    saved: SavedFleetState, batch: Mapping[NodeName, datetime], at: datetime
) -> datetime | None:
    """Return when the latest batch began, as long as that matters."""
    known = saved.spot_return_at
    moments = [*batch.values(), *([] if known is None else [min(known, at)])]
    last = max(moments, default=None)
    return None if last is None or at - last >= BATCH_EVERY else last


def _waits(batch: Mapping[NodeName, datetime], last: datetime | None, at: datetime) -> str:
    """Return what the next batch waits for; empty if nothing."""
    if last is not None:
        return f"the next batch begins in {duration(BATCH_EVERY - (at - last))}"
    if batch:
        return f"{counted_noun(len(batch), 'node')} of the last batch are still being emptied"
    return ""
