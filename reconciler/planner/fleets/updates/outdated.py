"""Nodes that are to be replaced in time, one after the other, because of what they are.

The reason is the node and not its use: such a node leaves at any cost of moves and takes no pods of
others, and its replacement joins before its pods move.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.model.actions import PolicyName
from reconciler.model.cluster import Node
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.interruption_annotation import REBALANCE_RECOMMENDATION
from reconciler.model.text import duration
from reconciler.planner.disruption_settings import DisruptionReason
from reconciler.planner.fleets.fleet_nodes import FleetNodes
from reconciler.planner.fleets.updates.update import Update, unlike_nodes
from reconciler.planner.nodes.interruptions import InterruptionNotice
from reconciler.planner.settings import FleetSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdated:
    """Why a node is to be replaced."""

    reason: DisruptionReason
    """The reason by which disruption budgets count it."""
    policy: PolicyName
    because: str
    since: datetime
    """Of two nodes the one with the earlier time is replaced first."""
    waits: str = ""
    """What it waits for before it is drained, in words; empty if for nothing."""
    only_for_cheaper_spot: bool = False
    """Whether only a cheaper spot node is asked for to replace it, and its moves must be worth
    what they save; else it leaves at any cost."""

    replaced_by_group: bool = False
    """Whether its Auto Scaling group launches its replacement by itself."""

    @property
    def has_batch(self) -> bool:
        """Return whether new nodes are asked for with its batch, and none for itself as well."""
        return self.policy == "rolling-update"


def find_outdated(
    fleets: Iterable[FleetNodes],
    instances: Mapping[NodeName, Instance],
    noticed: Mapping[NodeName, InterruptionNotice],
    updates: Mapping[FleetKey, Update],
    at: datetime,
) -> Mapping[NodeName, Outdated]:
    """Return the nodes that are to be replaced, sorted by name.

    Args:
        fleets: All fleets; nodes of departing ones are left out.
        instances: Instances by node.
        noticed: Notices of EC2 by node.
        updates: Rolling updates by fleet.
        at: The time of the plan.
    """
    found: dict[NodeName, Outdated] = {}
    for fleet in fleets:
        update = updates.get(fleet.key)
        expires = fleet.settings.expire_after_seconds is not None
        if fleet.settings.departing or not (noticed or update or expires):
            continue
        for node in fleet.nodes:
            why = _by_notice(noticed.get(node.name), fleet, at) or _by_update(node, update)
            why = why or outdated_by_age(node, instances.get(node.name), fleet.settings, at)
            if why is not None:
                found[node.name] = why
    return dict(sorted(found.items()))


def _by_notice(
    notice: InterruptionNotice | None, fleet: FleetNodes, at: datetime
) -> Outdated | None:
    """Return why a node with a recommendation or scheduled change is to be replaced."""
    if notice is None or not notice.is_graceful(at):
        return None
    recommended = notice.action == REBALANCE_RECOMMENDATION
    return Outdated(
        reason="rebalance",
        policy="interruption",
        because=str(notice),
        since=notice.deadline,
        replaced_by_group=recommended and bool(fleet.live and fleet.live.rebalances_capacity),
    )


def _by_update(node: Node, update: Update | None) -> Outdated | None:
    """Return why a node in the current batch of a rolling update is to be replaced."""
    if update is None or node.name not in update.batch:
        return None
    batch = update.batch[node.name]
    waits = ""
    if not update.version_known:
        waits = update.because
    elif node.name in update.unknown - update.may_go:
        waits = "it waits until EC2 shows whether it is still drifted"
    elif node.name not in update.may_go:
        came = len(update.successors_taking_pods)
        waits = f"it waits until {batch.number} new nodes take pods, {came} do"
        if batch.number == 1:
            waits = "it waits until a new node takes pods"
        waits += unlike_nodes(update)
    return replace(chosen_by_update(update, node, batch.at), waits=waits)


def chosen_by_update(update: Update, node: Node, at: datetime) -> Outdated:
    """Return why a node that a rolling update chooses is to be replaced.

    Args:
        update: The update, of which it is an old node.
        node: The node.
        at: When its batch begins.
    """
    return Outdated(
        reason="drifted",
        policy="rolling-update",
        because=f"rolling update to launch template version {update.version}:"
        f" {update.old[node.name]}",
        since=at,
    )


def outdated_by_age(
    node: Node, instance: Instance | None, settings: FleetSettings, at: datetime
) -> Outdated | None:
    """Return why a node older than its fleet's `expire_after` is to be replaced; None if younger.

    Args:
        node: The node.
        instance: Its instance, from whose launch its age counts if it is known.
        settings: The settings of its fleet.
        at: The time of the plan.
    """
    since = instance.launched_at if instance is not None else None
    since = since or node.created_at
    if settings.expire_after_seconds is None or since is None:
        return None
    limit = timedelta(seconds=settings.expire_after_seconds)
    if at - since < limit:
        return None
    because = f"it is {duration(at - since)} old, its fleet's expire_after is {duration(limit)}"
    return Outdated(reason="expired", policy="expiry", because=because, since=since)
