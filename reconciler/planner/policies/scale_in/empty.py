"""Empty nodes: the timer, the limits, the taint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from reconciler.model.cluster import Node
from reconciler.model.ids import NodeName
from reconciler.planner.builder import Removal
from reconciler.planner.disruption.blockers import first_blocker, irreplaceable_pod
from reconciler.planner.disruption.drains import taint
from reconciler.planner.disruption.idleness import idle_for, is_empty
from reconciler.planner.disruption.timers import start_timer
from reconciler.planner.fleets.inventory import FleetStatus, is_joining
from reconciler.planner.placement.kinds import INSTANCE_TYPE
from reconciler.planner.policies.scale_in.blockers import NEEDED_BACK, at_minimum
from reconciler.planner.policies.scale_in.calendar import idle_seconds_required
from reconciler.planner.policies.scale_in.context import ScaleInContext, open_nodes
from reconciler.planner.settings import DisruptionReason
from reconciler.planner.text import duration

Eligible = tuple[timedelta, Node, FleetStatus]


@dataclass(frozen=True, slots=True, kw_only=True)
class EligibleNodes:
    """Nodes that have been empty long enough."""

    nodes: tuple[Eligible, ...]
    """Empty longest first."""
    spares: frozenset[NodeName]
    """Those of them that are kept all the same."""

    @property
    def removable(self) -> frozenset[NodeName]:
        """Those that may go."""
        return frozenset(node.name for _, node, _ in self.nodes) - self.spares


def find_eligible(context: ScaleInContext) -> EligibleNodes:
    """Start timers of empty nodes, and tell which have been empty long enough."""
    builder = context.builder
    view = builder.view
    eligible: list[Eligible] = []
    for node, key in open_nodes(view):
        if is_empty(builder, node):
            found = _eligible(context, node, view.statuses[key])
            if found is not None:
                eligible.append((found, node, view.statuses[key]))
    eligible.sort(key=lambda each: (-each[0], each[1].name))
    return EligibleNodes(nodes=tuple(eligible), spares=_spares(eligible))


def remove_empty(
    context: ScaleInContext, eligible: EligibleNodes, awaited: Mapping[NodeName, NodeName]
) -> None:
    """Taint what has been empty long enough.

    Args:
        context: The run.
        eligible: What may go.
        awaited: Those of them that stay for the pods of another node, which is named.
    """
    builder = context.builder
    for idle, node, status in eligible.nodes:
        if node.name in eligible.spares:
            builder.block(node, "type-spares", "kept as a spare of its instance type")
            context.closed.add(node.name)  # no destination either: a spare is kept idle
            context.spares.add(node.name)
        elif node.name in awaited and context.room.may_leave(status.key):
            source = awaited[node.name]
            builder.block(
                node, "consolidation", f"it costs less than {source}, whose pods can come"
            )
            context.wait(node.name)
        else:
            _remove(context, idle, node, status)


def _eligible(context: ScaleInContext, node: Node, status: FleetStatus) -> timedelta | None:
    """How long the node has been empty, when that is long enough and nothing forbids its end."""
    builder = context.builder
    view = builder.view
    found = first_blocker(view, node, status) or irreplaceable_pod(
        context.judge(status.settings), view.pods_on.get(node.name, [])
    )
    if found is not None:
        builder.block(node, *found)
        return None
    if is_joining(node, view.at, view.settings.instance_init_seconds):
        builder.block(node, "not-ready", "it is still starting: pods that wait count on it")
        return None
    noted = idle_for(view, node)
    if noted is None:
        start_timer(builder, node, "the node is empty: its idle time counts from now")
    idle = noted or timedelta(0)
    required = timedelta(
        seconds=idle_seconds_required(status.settings, view.at, view.settings.timezone)
    )
    if idle < required:
        waits = duration(required - idle)
        builder.block(node, "idle-time", f"empty for {duration(idle)}, {waits} to go")
        if context.room.may_leave(status.key):
            context.wait(node.name, mark=noted is not None)
        return None
    return idle


def _spares(eligible: Sequence[Eligible]) -> frozenset[NodeName]:
    """Per fleet and instance type as many as are asked for, idle below `type_idle_threshold`."""
    counts: dict[tuple[object, str], int] = {}
    kept: set[NodeName] = set()
    for idle, node, status in eligible:
        settings = status.settings.scale_in
        kind = (status.key, node.labels.get(INSTANCE_TYPE, ""))
        young = idle.total_seconds() < settings.type_idle_threshold_seconds
        if young and counts.get(kind, 0) < settings.type_spares:
            counts[kind] = counts.get(kind, 0) + 1
            kept.add(node.name)
    return frozenset(kept)


def _remove(context: ScaleInContext, idle: timedelta, node: Node, status: FleetStatus) -> None:
    """As far as the limits allow."""
    builder, most = context.builder, status.settings.scale_in.empty_at_once_max
    if not context.room.may_leave(status.key):
        builder.block(node, *at_minimum(status))
    elif context.draining_before + context.empty_begun >= most:
        builder.block(node, "max-empty-at-once", "enough nodes are leaving at once")
        context.wait(node.name)
    elif budget := context.budgets.blocker(status.key, _reason(status)):
        builder.block(node, *budget)
        context.wait(node.name)
    elif not _spare(context, node, status):
        builder.block(node, *NEEDED_BACK)
    else:
        context.room.leave(status.key)
        context.budgets.take(status.key)
        context.empty_begun += 1
        context.closed.add(node.name)
        because = f"empty for {duration(idle)}"
        actions = (taint(node, "scale-in", because),)
        builder.begin_removal(Removal(key=status.key, node=node.name, actions=actions))


def _reason(status: FleetStatus) -> DisruptionReason:
    """An empty node of a fleet that is to go differs from what the config asks for."""
    return "drifted" if status.settings.departing else "empty"


def _spare(context: ScaleInContext, node: Node, status: FleetStatus) -> bool:
    """Whether demand of this plan could do without the node."""
    staying = np.zeros(context.builder.sim.rows, dtype=np.bool_)
    gone = context.closed | context.draining | {node.name}
    staying[[row for name, row in context.view.row_of.items() if name not in gone]] = True
    return context.reserve.holds(status.settings.sector, staying)
