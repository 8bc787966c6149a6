"""Keeps fleets within their limits: lowered above the maximum, raised below the minimum.

The minimum is bought before demand, so that demand can use it.
"""

from reconciler.model.fleet import CAPABILITIES
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.live_fleet import LIVE_STATES
from reconciler.planner.nodes.drain_taints import POLICY_OF_DRAIN, drain_reasons


def propose(builder: PlanBuilder) -> None:
    """Raise every fleet that is below its minimum, and lower targets above the maximum.

    A target above the maximum that EC2 has not served yet is lowered, never below a group's own
    minimum. An instance that was launched counts as served: it will join whatever the target is. A
    provider that would end instances of its own choice is not asked to lower.
    """
    for status in builder.view.inventory.fleets:
        if status.state not in LIVE_STATES or _launches_nothing(status):
            continue
        most = None if status.max is None else max(status.max, status.min)
        if most is not None and status.current > max(most, status.joined):
            served = min(status.current, max(status.joined, _instances(builder, status)))
            target = max(most, served)
            limit = f"max_capacity is {status.max}"
            if status.settings.departing:
                limit = "the fleet is to go"
            because = f"{limit}, {status.joined} nodes have joined"
            lowers = CAPABILITIES[status.settings.provider].lowers_target
            if target < status.current and lowers:
                builder.lower_target(status.key, target, "max-capacity", because)
        else:
            _raise_to_minimum(builder, status)


def _launches_nothing(status: FleetStatus) -> bool:
    """Return whether nothing may be asked of the fleet, even its minimum, until it is changed."""
    return status.live is not None and bool(status.live.launches_halted)


def _instances(builder: PlanBuilder, status: FleetStatus) -> int:
    """Return the fleet's live instances, without those that this plan ends as never joined."""
    cloud = builder.view.snapshot.cloud
    if cloud is None or status.live is None:
        return 0
    place = (status.key.region, status.live.id)
    ended = {removal.instance for removal in builder.removals if removal.node is None}
    own = (i for i in cloud.instances if (i.region, i.fleet_id) == place)
    return sum(i.counts and i.id not in ended for i in own)


def _raise_to_minimum(builder: PlanBuilder, status: FleetStatus) -> None:
    """Ask for what is missing beyond the nodes that EC2 has launched or owes.

    A node whose drain can be given back is not replaced: scale-in gives it back. One that leaves
    for another reason is replaced, as far as the maximum allows; one that EC2 takes back from the
    first plan on, as that plan already looks for room for its pods.
    """
    taken_back = builder.view.inventory.interrupted
    ending = sum(
        node.name in taken_back or not drain_reasons(node) <= POLICY_OF_DRAIN.keys()
        for node in status.nodes
        if node.name not in status.set_aside
    )
    short = status.min - (status.joined_or_launching - ending)
    target = max(status.current, status.min, status.joined_or_launching + short if short > 0 else 0)
    if status.max is not None:
        target = min(target, max(status.max, status.min, status.current))
    if target > status.current:
        because, wanted = f"min_capacity is {status.min}", status.settings.min_capacity
        if wanted > status.min and not status.tier:
            because = f"min_capacity is {wanted}, and the group's MaxSize {status.max}"
        builder.raise_target(status.key, target, "min-capacity", because)
    coming = target - status.joined_or_launching
    if coming > 0 and not status.unavailable:
        first = builder.sim.add_row(builder.view.offers[status.key].row, coming)
        builder.plan_new_nodes(status.key, range(first, builder.sim.rows))
