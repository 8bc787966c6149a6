"""Rolling updates while EC2 does not return the launch template version of a fleet."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from reconciler.model.fleet import Instance
from reconciler.model.ids import NodeName
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.fleets.fleet_nodes import FleetNodes
from reconciler.planner.fleets.updates.batch_annotation import BatchAnnotation, read_batch
from reconciler.planner.fleets.updates.canary import stays
from reconciler.planner.fleets.updates.drift import old_and_new
from reconciler.planner.fleets.updates.update import Update
from reconciler.planner.nodes.starting import takes_pods
from reconciler.planner.settings import PlannerSettings

DRIFTED_AT_FIRST: Final = "it was drifted when its batch began"
"""Why a node of a batch is to be replaced while EC2 does not show from what it was launched."""
_UNKNOWN: Final = (
    "EC2 does not return the number of its launch template version: nothing begins until it does"
)


def standing_update(
    fleet: FleetNodes,
    instances: Mapping[NodeName, Instance],
    saved: SavedFleetState | None,
    at: datetime,
    settings: PlannerSettings,
) -> Update | None:
    """Return the update of a fleet with an unknown version; None if it has none.

    What was known last holds: its halt, its canary, and the batch whose nodes are marked. Nodes
    that joined since that batch began count as those it waits for, but none of it is drained for
    them: they may be of a later version.

    Args:
        fleet: The fleet.
        instances: Instances by node.
        saved: What the Lease has about it.
        at: The time of the plan.
        settings: Which taints are start-up taints.
    """
    assert fleet.live is not None
    old, _ = old_and_new(fleet, fleet.live, instances)
    batches = {n.name: batch for n in fleet.nodes if (batch := read_batch(n, at)) is not None}
    halted = saved is not None and bool(saved.halted_version)
    watched = _old_of_watched(fleet, instances, saved, in_batch=bool(batches))
    if fleet.settings.departing or not (halted or old or batches or watched):
        return None
    update = Update(
        key=fleet.key,
        version=fleet.live.launch_template_version,
        state="paused",
        because=_UNKNOWN,
        old=old,
        batch={},
        new=(),
        spare=0,
        may_go=frozenset(),
        batch_max=0,
        version_known=False,
    )
    if saved is not None and halted:
        because = saved.halted_because
        return replace(update, version=saved.halted_version, state="halted", because=because)
    if batches:
        update = _with_batch(update, fleet, batches, settings)
    if saved is not None and watched:
        version, old = saved.canary_version, {**watched, **update.old}
        update = replace(update, version=version, state="canary", old=old)
    return update


def _with_batch(
    update: Update,
    fleet: FleetNodes,
    batches: Mapping[NodeName, BatchAnnotation],
    settings: PlannerSettings,
) -> Update:
    """Return the update with the batch whose nodes are marked, and the nodes that joined since.

    Args:
        update: The update without a batch.
        fleet: Its fleet.
        batches: The batches by node, at least one.
        settings: Which taints are start-up taints.
    """
    latest = max(batches.values(), key=lambda batch: batch.at)
    began = min(batch.at for batch in batches.values())
    newer = (n for n in fleet.nodes if n.name not in batches and n.name not in update.old)
    came = tuple(n for n in newer if n.created_at is not None and n.created_at >= began)
    return replace(
        update,
        version=latest.version,
        old={**dict.fromkeys(batches, DRIFTED_AT_FIRST), **update.old},
        batch=dict(sorted(batches.items(), key=lambda each: (each[1].number, each[0]))),
        new=came,
        taking=frozenset(node.name for node in came if takes_pods(node, settings)),
        staying=frozenset(node.name for node in came if stays(node, (), settings)),
    )


def _old_of_watched(
    fleet: FleetNodes,
    instances: Mapping[NodeName, Instance],
    saved: SavedFleetState | None,
    *,
    in_batch: bool,
) -> Mapping[NodeName, str]:
    """Return the drifted nodes of a fleet with an unproven canary; empty without a canary.

    The version that was known last is the one that the canary is of.
    """
    if saved is None or saved.canary_proven or not saved.canary_version:
        return {}
    assert fleet.live is not None
    live = replace(fleet.live, launch_template_version=saved.canary_version)
    old, new = old_and_new(fleet, live, instances)
    return old if new or in_batch else {}
