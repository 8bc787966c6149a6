"""Nodes as rows of the what-if cluster."""

from collections.abc import Iterable, Mapping

from reconciler.model.cluster import Node, Taint
from reconciler.planner.placement.simulation import NO_LIMITS, RowSpec


def node_row(
    node: Node,
    *,
    taints: Iterable[Taint] | None = None,
    closed: bool = False,
    volume_limits: Mapping[str, int | None] = NO_LIMITS,
) -> RowSpec:
    """The row of a node.

    Args:
        node: What is known of it.
        taints: As if it carried these; None for its own.
        closed: Whether nothing more may be placed there, whatever a pod tolerates.
        volume_limits: How many volumes it attaches, per CSI driver.
    """
    closed = closed or node.unschedulable or node.unreadable or node.deleting
    return RowSpec(
        name=node.name,
        variants=(node.labels,),
        taints=node.taints if taints is None else tuple(taints),
        schedulable=node.ready and not closed,
        allocatable=node.allocatable,
        volume_limits=volume_limits,
    )
