"""Replacement of a node by one of its own fleet, because the fleet is at its minimum."""

from reconciler.model.actions import PolicyName
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey
from reconciler.planner.cost_limits import cost_limits
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.pods import at_minimum
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.replacement.unproven_version import unproven_version
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.maximum import maximum_reached
from reconciler.planner.fleets.updates.outdated import Outdated
from reconciler.planner.reserved_places import BREAKS_RESERVATIONS


def ask_for_successor(
    context: DisruptionContext, node: Node, status: FleetStatus, outdated: Outdated | None
) -> bool:
    """Ask the node's fleet for one more node, so that the node can leave in a later plan.

    Args:
        context: The run.
        node: A node that only its fleet's minimum keeps.
        status: Its fleet.
        outdated: Why it is to be replaced; if None, it is not and stays.

    Returns:
        Whether one was asked for, now or with the batch of a rolling update.
    """
    builder, key = context.builder, status.key
    if outdated is None:
        builder.block(node, *at_minimum(status))
        return False
    if outdated.replaced_by_group:
        builder.block(node, *waits_for_its_group(key))
        return True
    if outdated.has_batch:
        asked = builder.targets[key] > status.current
        none = None if asked else no_successor(context, status)
        builder.block(node, *(none or waits_for_successor(key)))
        return none is None
    if waits_for_what_is_owed(context, node, status):
        return True
    because = f"{node.name} is replaced: {outdated.because}"
    why = unproven_version(context.view, key, outdated)
    why = why or ask_for_successors(context, status, 1, outdated.policy, because)
    if why is not None:
        builder.block(node, *why)
        return False
    builder.block(node, *waits_for_successor(key))
    context.ledger.take_node(key)
    return True


def waits_for_what_is_owed(context: DisruptionContext, node: Node, status: FleetStatus) -> bool:
    """Return whether the node only waits for launching capacity of its fleet.

    Then it counts as disrupted, so that no further node is asked for past a disruption budget.
    False while EC2 cannot launch what it owes, which may take long.
    """
    key = status.key
    if not context.removal_quota.allows_in_time(key, node.name):
        return False
    context.removal_quota.take_in_time(key, node.name)
    if status.unavailable:
        why = f"it is not replaced now: {status.unavailable}"
        context.builder.block(node, "replacement", why)
    else:
        context.builder.block(node, *waits_for_successor(key))
        context.ledger.take_node(key)
    return True


def waits_for_its_group(key: FleetKey) -> Blocker:
    """Return the blocker of a node that its Auto Scaling group replaces by itself."""
    text = f"it is drained when the node that {key.name} launches by itself has joined"
    return Blocker("replacement", text)


def waits_for_successor(key: FleetKey) -> Blocker:
    """Return the blocker of a node whose fleet was asked for a replacement."""
    return Blocker("replacement", f"it is drained when a replacement of {key.name} has joined")


def ask_for_successors(
    context: DisruptionContext, status: FleetStatus, count: int, policy: PolicyName, because: str
) -> Blocker | None:
    """Ask a fleet for more nodes to replace some of its own; return a blocker if it can have none.

    Args:
        context: The run.
        status: The fleet.
        count: How many, at least one; as many of them as it can have are asked for.
        policy: Whose decision it is.
        because: Why.
    """
    for number in range(count):
        why = no_successor(context, status)
        if why is not None:
            return why if number == 0 else None
        context.builder.ask_for_replacements(status.key, 1, policy, because)
    return None


def no_successor(context: DisruptionContext, status: FleetStatus) -> Blocker | None:
    """Return why its fleet cannot have one more node; None if it can."""
    builder, key = context.builder, status.key
    if status.unavailable:
        return Blocker("replacement", f"it cannot be replaced: {status.unavailable}")
    if status.max is not None and builder.size_of(key) >= status.max:
        _, clause = maximum_reached(status, builder.size_of(key))
        maximum = f"its fleet {clause}: it cannot be replaced"
        return Blocker("max-capacity", maximum)
    price = builder.view.offers[key].nano_usd_per_hour
    if any(price > limit.left for limit in cost_limits(builder, status.settings.sector)):
        return Blocker("max-cost", "its replacement would cost more than a limit allows")
    if context.reservation_guard.forbids(key):
        return Blocker("replacement", f"it cannot be replaced now: {BREAKS_RESERVATIONS}")
    return None
