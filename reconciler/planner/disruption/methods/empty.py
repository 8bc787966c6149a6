"""Method: taints nodes that have been empty for long enough, as far as the limits allow."""

from datetime import timedelta

import numpy as np

from reconciler.model.actions import PolicyName
from reconciler.model.cluster import Node
from reconciler.model.text import duration
from reconciler.planner.builder_values import Removal
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.pods import NEEDED_BACK, at_minimum
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.actions import taint
from reconciler.planner.disruption.replacement.awaited_nodes import find_awaited
from reconciler.planner.disruption.replacement.headroom_to_come import (
    HOLDS_HEADROOM,
    kept_for_headroom,
)
from reconciler.planner.disruption.replacement.successor import ask_for_successor
from reconciler.planner.disruption.voluntary_run import VoluntaryRun
from reconciler.planner.disruption_settings import DisruptionReason
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.updates.outdated import Outdated


def propose(run: VoluntaryRun) -> None:
    """Taint eligible nodes, except those that are to take the pods of a more expensive node."""
    context, eligible = run.context, run.empty
    builder, awaited = context.builder, find_awaited(context, run.candidates, eligible)
    kept = kept_for_headroom(context, eligible)
    for idle, node, status in eligible.nodes:
        if node.name in eligible.spares:
            builder.block(node, "type-spares", "kept as a spare of its instance type")
            context.closed.add(node.name)  # no destination either: a spare is kept idle
            context.spares.add(node.name)
        elif node.name in awaited and context.removal_quota.allows_in_time(status.key, node.name):
            source = awaited[node.name]
            why = f"it stays to take the pods of {source}, which costs more"
            builder.block(node, "consolidation", why)
            context.wait(node.name)
        elif node.name in kept:
            builder.block(node, *HOLDS_HEADROOM)
        else:
            _remove(run, idle, node, status)


def _remove(run: VoluntaryRun, idle: timedelta, node: Node, status: FleetStatus) -> None:
    """Begin to remove one empty node if all limits allow it; otherwise note why it stays."""
    context, builder = run.context, run.context.builder
    outdated = context.view.inventory.outdated.get(node.name)
    if outdated is not None and outdated.waits:
        builder.block(node, "replacement", outdated.waits)
    elif not context.removal_quota.allows(status.key, node.name):
        _keep_minimum(run, node, status, outdated)
    elif (limit := _limit(context, node, status, outdated)) is not None:
        _hold(run, node, status, limit)
        context.wait(node.name)
    elif outdated is None and not _spare(context, node, status):
        builder.block(node, *NEEDED_BACK)
    else:
        because = f"empty for {duration(idle)}"
        policy: PolicyName = "scale-in"
        if outdated is not None:
            policy, because = outdated.policy, f"{outdated.because}; no counted pod is on it"
        context.removal_quota.take(status.key, node.name)
        context.ledger.take_node(status.key, node.name)
        context.empty_begun += 1
        context.closed.add(node.name)
        actions = (taint(node, policy, because),)
        builder.begin_removal(Removal(key=status.key, node=node.name, actions=actions))


def _keep_minimum(
    run: VoluntaryRun, node: Node, status: FleetStatus, outdated: Outdated | None
) -> None:
    """Ask for a new node in the place of one that its fleet cannot do without, or note why not."""
    context = run.context
    budget = context.ledger.node_blocker(status.key, _reason(status, outdated), node.name)
    if budget is None:
        ask_for_successor(context, node, status, outdated)
    else:
        _hold(run, node, status, at_minimum(status) if outdated is None else budget)


def _limit(
    context: DisruptionContext, node: Node, status: FleetStatus, outdated: Outdated | None
) -> Blocker | None:
    """Return which limit of this plan the removal would exceed; None if there is none."""
    most = status.settings.scale_in.empty_at_once_max
    if context.draining_before + context.empty_begun >= most:
        return Blocker("max-empty-at-once", "enough nodes are leaving at once")
    return context.ledger.node_blocker(status.key, _reason(status, outdated), node.name)


def _hold(run: VoluntaryRun, node: Node, status: FleetStatus, why: Blocker) -> None:
    """Note what keeps a node for now.

    A node that is to be replaced only waits for its turn, unless its fleet lets no empty node go at
    all.
    """
    run.context.builder.block(node, *why)
    outdated = node.name in run.context.view.inventory.outdated
    if outdated and status.settings.scale_in.empty_at_once_max:
        run.limited_nodes[node.name] = why.code


def _reason(status: FleetStatus, outdated: Outdated | None) -> DisruptionReason:
    """Return the reason by which disruption budgets count the removal."""
    if outdated is not None:
        return outdated.reason
    return "drifted" if status.settings.departing else "empty"


def _spare(context: DisruptionContext, node: Node, status: FleetStatus) -> bool:
    """Return whether the reserve for demand stays free without the node."""
    staying = np.zeros(context.builder.sim.rows, dtype=np.bool_)
    gone = context.closed | context.draining | {node.name}
    staying[[row for name, row in context.view.row_of.items() if name not in gone]] = True
    return context.demand_margin.holds(status.settings.sector, staying)
