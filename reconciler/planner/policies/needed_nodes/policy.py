"""Raises a target that is below the nodes that stay (docs/scale-in.md: needed + draining).

A person may have lowered it, or a drain was interrupted after it lowered the target and its node is
used again. EC2 ends no node at once, but it would replace none either, and anyone who modifies the
fleet with EC2's usual policy would lose nodes in use.
"""

from reconciler.model.text import counted_noun
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.limits.nodes_that_stay import ended_nodes, nodes_that_stay
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.live_fleet import LIVE_STATES


def propose(builder: PlanBuilder) -> None:
    """Raise targets that are too low, up to the maximum; launches nothing, as the nodes exist."""
    ended = ended_nodes(builder)
    for status in builder.view.inventory.fleets:
        live = status.live
        if live is None or live.counts_units or status.state not in LIVE_STATES:
            continue
        in_use = nodes_that_stay(builder, status, ended)
        needed = in_use if status.max is None else min(in_use, max(status.max, status.current))
        if needed > builder.targets[status.key]:
            builder.raise_target(status.key, needed, "scale-up", _because(status, in_use))


def _because(status: FleetStatus, in_use: int) -> str:
    verbs = "holds pods or is" if in_use == 1 else "hold pods or are"
    nodes = counted_noun(in_use, "node")
    return f"{nodes} of it {verbs} protected, its target is {status.current}"
