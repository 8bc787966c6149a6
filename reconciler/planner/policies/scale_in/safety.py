"""The safety stop: a plan that would begin to remove too much at once begins nothing."""

from collections.abc import Sequence

from reconciler.model.actions import TaintNode
from reconciler.model.plan import Held
from reconciler.planner.cycle import Cycle

SHARE_MAX = 0.3
"""Of all nodes of our fleets (behaviour, section 11)."""
NODES_MAX = 3


def begin_removals(cycle: Cycle, removals: Sequence[TaintNode]) -> None:
    """Add the removals, or hold them all until a second full list agrees."""
    ours = len(cycle.inventory.fleet_of_node)
    too_many = len(removals) > NODES_MAX and len(removals) > SHARE_MAX * ours
    if too_many and cycle.snapshot.cluster.relists < 2:
        cycle.held += [Held(node=removal.node, code="safety-stop") for removal in removals]
        return
    cycle.actions += removals
