"""Lowers the targets of failing fleets (`never-joined`) by nodes that no pod needs.

A fleet replaces single instances that fail. After three in a row, which make it unavailable, EC2
would go on to launch another for each that is ended, or ends by itself, without end.
Decided last, when it is known what asks for nodes.
"""

from collections import Counter
from collections.abc import Collection, Container
from dataclasses import replace
from typing import TypeGuard

from reconciler.model.actions import AnyAction, TerminateInstance, begins_drain
from reconciler.model.fleet import CAPABILITIES
from reconciler.model.ids import FleetKey, InstanceId, NodeName
from reconciler.model.text import counted_noun
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.limits.nodes_that_stay import ended_nodes, nodes_that_stay
from reconciler.planner.disruption.limits.removals import replaced_later, still_draining
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.offers import suits_class


def lower_unneeded_targets(builder: PlanBuilder) -> None:
    """Lower targets of fleets in their cool-off by owed nodes that nothing asks for.

    They are lowered with the ends of stuck instances. That of an EC2 Fleet is lowered by all that
    it owes at once, as there may be no instance left to end. A group would end some of its choice.
    """
    inventory, demand = builder.view.inventory, builder.view.demand
    if inventory.doubtful or demand.deferred or demand.left_out:
        return  # pods that were not planned for may need these nodes
    stuck = {stuck_instance.instance.id: stuck_instance.key for stuck_instance in inventory.stuck}
    ends = [a for removal in builder.removals for a in removal.actions if _keeps_target(a, stuck)]
    failing = (s for s in inventory.fleets if s.unavailable_kind == "never-joined")
    owing = [each for each in failing if each.launching]
    if not owing:
        return
    given_up: set[InstanceId] = set()
    draining, used = still_draining(builder), _used_rows(builder)
    for status in owing:
        if _asks_for_nodes(builder, status):
            continue
        owed = _unasked(builder, status, draining, used[status.key])
        if owed <= 0:
            continue
        ended = [a.instance for a in ends if stuck[a.instance] == status.key][:owed]
        given_up.update(ended)
        lowers = CAPABILITIES[status.settings.provider].lowers_target
        left = owed - len(ended)
        if left and lowers:
            because = f"nothing asks for {counted_noun(left, 'node')} of it; {status.unavailable}"
            target = builder.targets[status.key] - left
            builder.lower_target(status.key, target, "stuck-instance", because)
    if given_up:
        builder.change_removals(
            replace(removal, actions=tuple(_with_target(a, given_up) for a in removal.actions))
            for removal in builder.removals
        )


def _keeps_target(action: AnyAction, stuck: Collection[InstanceId]) -> TypeGuard[TerminateInstance]:
    """Return whether the action ends a stuck instance, and its fleet launches another."""
    return (
        isinstance(action, TerminateInstance) and action.instance in stuck and not action.decrement
    )


def _with_target(action: AnyAction, given_up: Collection[InstanceId]) -> AnyAction:
    """Return the action; if it ends one of these instances, the target is lowered with it."""
    if not isinstance(action, TerminateInstance) or action.instance not in given_up:
        return action
    what = action.because.partition(": ")[0]
    because = f"{what}: nothing asks for another in its place"
    return replace(action, decrement=True, because=because)


def _used_rows(builder: PlanBuilder) -> Counter[FleetKey]:
    """Return how many nodes of each fleet that launch, or are asked for, something will use."""
    coming = builder.planned_nodes.items()
    return Counter(node.key for row, node in coming if row in builder.used_rows)


def _asks_for_nodes(builder: PlanBuilder, status: FleetStatus) -> bool:
    """Return whether the fleet needs more nodes, or its target is no measure of what it owes.

    Demand that its nodes would suit, or headroom of its sector, may be without a place, or its
    rolling update goes on. A target below what EC2 provides has been lowered already.
    """
    view, live = builder.view, status.live
    target = builder.targets[status.key]
    if live is None or live.counts_units or target != status.current or target < status.provided:
        return True
    update, sector = view.inventory.updates.get(status.key), status.settings.sector
    if update is not None and not (update.halted or status.unavailable):
        return True
    left = (
        waiting_class
        for waiting_class in builder.waiting
        if waiting_class.left and sector in waiting_class.sectors
    )
    if any(suits_class(builder, waiting_class, status) for waiting_class in left):
        return True
    return any(
        headroom_plan.missing and headroom_plan.sector == sector
        for headroom_plan in builder.headroom
    )


def _unasked(
    builder: PlanBuilder, status: FleetStatus, draining: Container[NodeName], used: int
) -> int:
    """Return how many of the nodes that EC2 owes nothing asks for, above the fleet's minimum.

    Args:
        builder: The plan.
        status: A fleet that asks for no more nodes.
        draining: Nodes of all fleets that continue to drain.
        used: How many of the fleet's coming nodes something will use.
    """
    view, key = builder.view, status.key
    own = [removal for removal in builder.removals if removal.key == key]
    lowered = sum(removal.targets_lowered for removal in own)
    drained = sum(node.name in draining for node in status.nodes)
    drained += sum(begins_drain(action) for removal in own for action in removal.actions)
    drained_later = sum(n.ready and n.name in view.inventory.stuck_nodes for n in status.nodes)
    owed = status.launching - lowered - drained_later - used - len(replaced_later(view, key))
    left = builder.targets[key] - lowered
    # A node that a person keeps may never have become Ready: below it the target is raised again.
    return min(
        owed,
        left - drained - status.min,
        left - nodes_that_stay(builder, status, ended_nodes(builder)),
    )
