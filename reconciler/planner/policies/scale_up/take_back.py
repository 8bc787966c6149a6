"""Gives draining nodes that are needed back before anything is launched (docs/scale-up.md)."""

from collections.abc import Container

import numpy as np

from reconciler.model.actions import DRAIN_STARTED, DRAINING_TAINT
from reconciler.model.cluster import Node
from reconciler.model.ids import NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.drains.actions import end_of_drain, untaint
from reconciler.planner.node_rows import node_row
from reconciler.planner.nodes.drain_taints import is_draining_voluntarily
from reconciler.planner.placement.fill import tightness
from reconciler.planner.policies.scale_up.place import fill_untorn
from reconciler.planner.view import ClusterView


def take_back_draining(builder: PlanBuilder) -> None:
    """Offer the draining nodes to pods that are still pending; give back those that help."""
    view = builder.view
    going = view.inventory.departing | view.inventory.outdated.keys()
    draining = [n for n in view.nodes.values() if _may_return(view, n, going)]
    if not draining or not any(w.left for w in builder.waiting):
        return
    before = set(builder.used_rows)
    among = np.zeros(builder.sim.rows, dtype=np.bool_)
    for node in draining:
        row = view.row_of[node.name]
        without = [t for t in node.taints if t.key != DRAINING_TAINT]
        builder.sim.set_schedulable(row, node_row(node, taints=without))
        among[row] = True
    order = tightness(builder.sim)
    for waiting in builder.waiting:
        fill_untorn(builder, waiting, among, order)
    for node in draining:
        row = view.row_of[node.name]
        if row in builder.used_rows and row not in before:
            _take_back(builder, node)
        else:
            builder.sim.set_schedulable(row, node_row(node))


def _may_return(view: ClusterView, node: Node, going: Container[NodeName]) -> bool:
    return (
        is_draining_voluntarily(node)
        and node.ready
        and not node.deleting
        and node.name in view.inventory.fleet_of_node
        and node.name not in view.inventory.leaving
        and node.name not in view.inventory.interrupted
        and node.name not in going
    )


def _take_back(builder: PlanBuilder, node: Node) -> None:
    because = "pending pods fit on this node: taken back before anything is launched"
    builder.cancel_drain([untaint(node, "scale-up", because)])
    if DRAIN_STARTED in node.annotations:
        builder.cancel_drain(end_of_drain(builder.view, node, "scale-up", because))
