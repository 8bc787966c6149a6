"""Empty nodes that are to be replaced, and whose free room serves as headroom meanwhile.

No piece of headroom is placed on such a node (`may_hold_headroom`), so that it can leave. Its room
is free all the same, and kube-scheduler may use it: it leaves once its replacement takes pods.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from reconciler.model.cluster import Node
from reconciler.model.ids import NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.empty_nodes import EligibleNodes
from reconciler.planner.disruption.replacement.successor import no_successor
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.headroom.demand import pieces_asked_for
from reconciler.planner.nodes.starting import takes_pods
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.fill import fill, tightness

HOLDS_HEADROOM: Final = Blocker(
    "replacement", "headroom has room only there until its replacement takes pods"
)
_ROOM_BY_LEAVING: Final = frozenset({"max-capacity", "max-cost"})
"""Codes of what keeps a fleet from having one more node only until one of its nodes leaves."""


def kept_for_headroom(context: DisruptionContext, eligible: EligibleNodes) -> frozenset[NodeName]:
    """Return the empty nodes that stay until nodes for the headroom have joined.

    If nothing can join before a node has left, because its fleet is at its maximum, or nothing at
    all in its region, the node does not wait for what is missing. Nodes in a batch of a rolling
    update wait for the batch's new nodes.

    Args:
        context: The run; what is simulated is undone.
        eligible: Nodes that have been empty for long enough, or are to be replaced.
    """
    builder, outdated = context.builder, context.view.inventory.outdated
    if not builder.headroom:
        return frozenset()
    nodes = [
        (node, status)
        for _, node, status in eligible.nodes
        if node.name in outdated and not outdated[node.name].has_batch
    ]
    if not nodes:
        return frozenset()
    waiting = [node for node, status in nodes if not _goes_first(context, status)]
    mark = builder.sim.fork()
    kept = _laid_on(builder, _pieces_to_come(builder), [node for node, _ in nodes])
    kept |= _laid_on(builder, _pieces_missing(builder), waiting)
    builder.sim.revert(mark)
    return kept


def _goes_first(context: DisruptionContext, status: FleetStatus) -> bool:
    """Return whether its fleet can have one more node only after one of its nodes has left.

    In a region that is not the sector's preferred one no headroom is bought: nothing comes there.
    """
    if status.tier:
        return True
    why = no_successor(context, status)
    return why is not None and why.code in _ROOM_BY_LEAVING


def _pieces_to_come(builder: PlanBuilder) -> Counter[PodClass]:
    """Count by class the pieces that are placed on nodes which do not take pods yet."""
    view, found = builder.view, Counter[PodClass]()
    for pod_class, row, count in builder.headroom_places:
        node = view.nodes.get(builder.row_name(row))
        if node is None or not takes_pods(node, view.settings):
            found[pod_class] += count
    return found


def _pieces_missing(builder: PlanBuilder) -> Counter[PodClass]:
    """Count by class the pieces that have no place."""
    found = Counter[PodClass]()
    missing = {(plan.sector, plan.asked): plan.missing for plan in builder.headroom if plan.missing}
    for pieces in pieces_asked_for(builder, builder.reservations) if missing else ():
        pod_class = builder.view.table.of(pieces.pod, bound=False)
        found[pod_class] += missing.get((pieces.sector, pieces.asked), 0)
    return found


def _laid_on(
    builder: PlanBuilder, pieces: Counter[PodClass], nodes: Sequence[Node]
) -> frozenset[NodeName]:
    """Place the pieces on these nodes; return the nodes that take any."""
    among = np.zeros(builder.sim.rows, dtype=np.bool_)
    among[[builder.view.row_of[node.name] for node in nodes]] = True
    node_names: set[NodeName] = set()
    for pod_class, count in pieces.items():
        laid = fill(builder.sim, pod_class, count, among, tightness(builder.sim))
        node_names |= {builder.row_name(row) for row, _ in laid}
    return frozenset(node_names)
