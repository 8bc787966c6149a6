"""Which nodes without pods may be removed: their timers, and the spares that stay."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from reconciler.model.cluster import Node
from reconciler.model.ids import NodeName
from reconciler.model.text import duration
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.grace_periods import (
    grace_seconds,
    idle_long_enough_at,
    idle_seconds_required,
)
from reconciler.planner.disruption.blockers.nodes import empty_node_blocker
from reconciler.planner.disruption.blockers.pods import at_minimum
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.idleness import idle_for, is_empty
from reconciler.planner.disruption.drains.timers import start_timer
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.nodes.starting import is_joining
from reconciler.planner.placement.kinds import INSTANCE_TYPE
from reconciler.planner.view import ClusterView

Eligible = tuple[timedelta, Node, FleetStatus]


@dataclass(frozen=True, slots=True, kw_only=True)
class EligibleNodes:
    """The nodes that have been empty long enough to be removed."""

    nodes: tuple[Eligible, ...]
    """Nodes that are to be replaced come first, then those that have been empty longest."""
    spares: frozenset[NodeName]
    """Those of `nodes` that are kept as spares."""

    @property
    def removable(self) -> frozenset[NodeName]:
        """Return the nodes that may be removed."""
        return frozenset(node.name for _, node, _ in self.nodes) - self.spares


def find_eligible(context: DisruptionContext) -> EligibleNodes:
    """Return the nodes that have been empty long enough, and start the timers of the others."""
    builder = context.builder
    view = builder.view
    eligible: list[Eligible] = []
    waiting: list[Eligible] = []
    for node, key in context.open_nodes:
        status = view.statuses[key]
        idle = _idle(context, node, status) if is_empty(builder, node) else None
        if idle is None:
            continue
        young = idle < _required(view, status) and node.name not in view.inventory.outdated
        (waiting if young else eligible).append((idle, node, status))
    outdated = view.inventory.outdated
    eligible.sort(key=lambda each: (each[1].name not in outdated, -each[0], each[1].name))
    found = EligibleNodes(nodes=tuple(eligible), spares=_spares(eligible, outdated))
    _note_waiting(context, waiting, found)
    return found


def _idle(context: DisruptionContext, node: Node, status: FleetStatus) -> timedelta | None:
    """Return how long the node has been empty; None if something forbids its end.

    What forbids it is noted in the plan.
    """
    builder = context.builder
    view = builder.view
    blocker = (
        empty_node_blocker(view, context.judge(status.settings), node, status)
        or context.sets.blocker(node.name)
        or _awaits_a_batch(view, node, status)
    )
    if blocker is not None:
        builder.block(node, *blocker)
        return None
    instance = view.inventory.instance_of_node.get(node.name)
    if is_joining(node, instance, view.at, view.settings):
        builder.block(node, "not-ready", "it is still starting, and not idle before it takes pods")
        return None
    noted = idle_for(view, node)
    if noted is None:
        start_timer(builder, node, "the node is empty: its idle time counts from now")
    until = builder.purchases.awaiting_pods.get(node.name)
    if until is not None:
        builder.block(node, "demand", "kube-scheduler may still bind pending pods to it", until)
        return None
    return noted or timedelta(0)


def _required(view: ClusterView, status: FleetStatus) -> timedelta:
    """Return how long a node of the fleet has to be empty before it is removed."""
    seconds = idle_seconds_required(status.settings, view.at, view.settings.timezone)
    return timedelta(seconds=seconds)


def _note_waiting(
    context: DisruptionContext, waiting: list[Eligible], found: EligibleNodes
) -> None:
    """Note for each node that has not been empty long enough what it waits for.

    Nodes beyond what the fleet's minimum lets go are kept by the minimum and not by their time.
    """
    builder, view = context.builder, context.view
    going = Counter(status.key for _, node, status in found.nodes if node.name in found.removable)
    for idle, node, status in sorted(waiting, key=lambda each: (-each[0], each[1].name)):
        going[status.key] += 1
        if going[status.key] > context.removal_quota.left[status.key]:
            builder.block(node, *at_minimum(status))
        else:
            builder.block(node, *_waits(view, status, idle))
        if context.removal_quota.allows(status.key, node.name):
            context.wait(node.name, taint=idle_for(view, node) is not None)


def _waits(view: ClusterView, status: FleetStatus, idle: timedelta) -> Blocker:
    """Return the blocker of a node that has not been empty long enough, and what it waits for."""
    settings, timezone = status.settings, view.settings.timezone
    until = idle_long_enough_at(settings, view.at - idle, view.at, timezone)
    detail = f"empty for {duration(idle)}, {duration(until - view.at)} to go"
    grace = {grace_seconds(settings.grace_periods, moment, timezone) for moment in (view.at, until)}
    asked = max((seconds for seconds in grace if seconds is not None), default=None)
    own = settings.scale_in
    if asked is not None and not (
        own.idle_threshold_explicit and asked <= own.idle_threshold_seconds
    ):
        detail += f"; a grace period asks for {duration(timedelta(seconds=asked))}"
    return Blocker("idle-time", detail, until)


def _awaits_a_batch(view: ClusterView, node: Node, status: FleetStatus) -> Blocker | None:
    """Return a blocker if the node is to take the pods of a rolling update's batch.

    If it were ended as idle, it would be bought again and again until those pods may be moved.
    """
    update = view.inventory.updates.get(status.key)
    if update is None or not update.awaits(node):
        return None
    return Blocker(
        "rolling-update",
        f"the pods of nodes that the rolling update to version {update.version} replaces are to "
        "move to it",
    )


def _spares(eligible: Sequence[Eligible], outdated: Collection[NodeName]) -> frozenset[NodeName]:
    """Return the spares: `type_spares` per fleet and instance type, idle for a short time only."""
    counts: dict[tuple[object, str], int] = {}
    kept: set[NodeName] = set()
    for idle, node, status in eligible:
        settings = status.settings.scale_in
        kind = (status.key, node.labels.get(INSTANCE_TYPE, ""))
        if node.name in outdated:
            continue
        young = idle.total_seconds() < settings.type_idle_threshold_seconds
        if young and counts.get(kind, 0) < settings.type_spares:
            counts[kind] = counts.get(kind, 0) + 1
            kept.add(node.name)
    return frozenset(kept)
