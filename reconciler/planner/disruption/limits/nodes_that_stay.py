"""How many nodes of a fleet stay, so that its target must not be lower."""

from collections.abc import Container

from reconciler.model.actions import TerminateInstance
from reconciler.model.cluster import Node
from reconciler.model.ids import NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blockers.nodes import protection
from reconciler.planner.disruption.drains.idleness import is_empty
from reconciler.planner.fleets.inventory import FleetStatus


def ended_nodes(builder: PlanBuilder) -> set[NodeName | None]:
    """Return the nodes whose instances this plan ends already."""
    return {a.node for a in builder.actions if isinstance(a, TerminateInstance)}


def nodes_that_stay(
    builder: PlanBuilder, status: FleetStatus, ended: Container[NodeName | None]
) -> int:
    """Return how many nodes of the fleet that are not `ended` are in use or protected."""
    return sum(node.name not in ended and _in_use(builder, node) for node in status.nodes)


def _in_use(builder: PlanBuilder, node: Node) -> bool:
    """Return whether a node within the target has counted pods, gets some now, or is to be kept.

    A node that its group replaces by itself is not counted: its replacement comes on top of the
    target.
    """
    view = builder.view
    outdated = view.inventory.outdated.get(node.name)
    if outdated is not None and outdated.replaced_by_group:
        return False
    instance = view.inventory.instance_of_node.get(node.name)
    if instance is None or not instance.counts:
        return False
    return (node.ready and not is_empty(builder, node)) or protection(view, node) is not None
