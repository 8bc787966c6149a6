"""A draining node that is needed is taken back before anything is launched (docs/scale-up.md)."""

from collections.abc import Container

import numpy as np

from reconciler.model.actions import DRAIN_STARTED, DRAINING_TAINT
from reconciler.model.cluster import Node
from reconciler.model.ids import NodeName
from reconciler.planner.cycle import Cycle
from reconciler.planner.disruption.drains import end_of_drain, untaint
from reconciler.planner.fleets.inventory import is_draining_voluntarily
from reconciler.planner.node_rows import node_row
from reconciler.planner.placement.fill import tightness
from reconciler.planner.policies.scale_up.place import fill_class


def take_back_draining(cycle: Cycle) -> None:
    """Offer the draining nodes to what still waits; keep those that help."""
    departing = cycle.inventory.departing
    draining = [n for n in cycle.nodes.values() if _may_return(cycle, n, departing)]
    if not draining or not any(w.left for w in cycle.waiting):
        return
    before = set(cycle.used_rows)
    among = np.zeros(cycle.sim.rows, dtype=np.bool_)
    for node in draining:
        row = cycle.row_of[node.name]
        without = [t for t in node.taints if t.key != DRAINING_TAINT]
        cycle.sim.set_schedulable(row, node_row(node, taints=without))
        among[row] = True
    order = tightness(cycle.sim)
    for waiting in cycle.waiting:
        fill_class(cycle, waiting, among, order)
    for node in draining:
        row = cycle.row_of[node.name]
        if row in cycle.used_rows and row not in before:
            _take_back(cycle, node)
        else:
            cycle.sim.set_schedulable(row, node_row(node))


def _may_return(cycle: Cycle, node: Node, departing: Container[NodeName]) -> bool:
    return (
        is_draining_voluntarily(node)
        and node.ready
        and not node.deleting
        and node.name in cycle.inventory.fleet_of_node
        and node.name not in cycle.inventory.leaving
        and node.name not in departing
    )


def _take_back(cycle: Cycle, node: Node) -> None:
    because = "pending pods fit on this node: taken back before anything is launched"
    cycle.actions.append(untaint(node, "scale-up", because))
    if DRAIN_STARTED in node.annotations:
        cycle.actions += end_of_drain(cycle, node, "scale-up", because)
