"""A target below the nodes that stay is raised to them (docs/scale-in.md: needed + draining).

It comes to that when a person lowers it, or when a drain was interrupted after the target went
down and its node is used again. EC2 ends none of them at once, but it would replace none either,
and whoever modifies the fleet with EC2's usual policy would lose nodes at work.
"""

from reconciler.model.actions import TerminateInstance
from reconciler.model.cluster import Node
from reconciler.planner.cycle import Cycle
from reconciler.planner.disruption.blockers import protection
from reconciler.planner.disruption.idleness import is_empty
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.live import LIVE_STATES
from reconciler.planner.text import counted_noun


def propose(cycle: Cycle) -> None:
    """Raise what is too low, up to the maximum; launches nothing, as the nodes are there."""
    ended = {a.node for a in cycle.actions if isinstance(a, TerminateInstance)}
    for status in cycle.inventory.fleets:
        if status.live is None or status.state not in LIVE_STATES:
            continue
        in_use = sum(node.name not in ended and _in_use(cycle, node) for node in status.nodes)
        needed = in_use if status.max is None else min(in_use, max(status.max, status.current))
        if needed > cycle.targets[status.key]:
            cycle.targets[status.key] = needed
            cycle.raises[status.key] = ("scale-up", _because(status, in_use))


def _in_use(cycle: Cycle, node: Node) -> bool:
    """Whether a living node holds pods that count, gets some in this plan, or is to be kept."""
    instance = cycle.inventory.instance_of_node.get(node.name)
    if instance is None or instance.gone:
        return False
    return protection(cycle, node) is not None or (node.ready and not is_empty(cycle, node))


def _because(status: FleetStatus, in_use: int) -> str:
    verbs = "holds pods or is" if in_use == 1 else "hold pods or are"
    nodes = counted_noun(in_use, "node")
    return f"{nodes} of it {verbs} protected, its target is {status.current}"
