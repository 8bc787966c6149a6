"""Nodes that joined for pods which still wait: which should take them, and how long that may take.

A node that takes none of them shows that something about its fleet is not as expected.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

import numpy as np

from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey
from reconciler.model.saved_state import SavedDemandState
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.drains.idleness import is_empty
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.nodes.starting import is_joining
from reconciler.planner.placement.kinds import ZONE
from reconciler.planner.reservations import WaitingClass
from reconciler.planner.view import ClusterView

BIND_GRACE = timedelta(seconds=30)
"""How long kube-scheduler may take to bind a pod once a node that should take it is Ready.

A pod that it could not place is in backoff, up to podMaxBackoffSeconds (10 s by default,
kube-scheduler's KubeSchedulerConfiguration), and pods whose backoff has ended are retried once a
second; the rest is for the queue in front of it and for our own view, which is slightly late.
"""


def has_zones(view: ClusterView, state: SavedDemandState) -> bool:
    """Return whether EC2 chooses among several zones for the nodes that were asked for."""
    offer = view.offers.get(FleetKey(name=state.fleet, region=state.region))
    return offer is not None and len({v.get(ZONE, "") for v in offer.row.variants}) > 1


def bind_until(view: ClusterView, node: Node) -> datetime:
    """Return until when kube-scheduler may still bind pods to a node that has become Ready.

    For one that becomes Ready again and again that is no longer than a node may take to start.
    """
    made = node.created_at or view.at
    ready_at = max(made, node.ready_changed_at or made)
    latest = made + timedelta(seconds=view.settings.instance_init_seconds)
    return min(ready_at + BIND_GRACE, latest)


def serves(view: ClusterView, node: Node) -> bool:
    """Return whether the node is Ready, stays, and has not been taken out of service.

    One that never took a pod shows nothing about these pods: its fleet makes no usable nodes.
    """
    instance = view.inventory.instance_of_node.get(node.name)
    joining = is_joining(node, instance, view.at, view.settings)
    joining = joining or node.name in view.inventory.stuck_nodes
    out = node.unschedulable or node.deleting or node.unreadable or is_draining(node)
    return not (joining or out)


def should_take(
    builder: PlanBuilder, waiting: WaitingClass, node: Node, state: SavedDemandState
) -> bool:
    """Return whether the node would have room for the pod if it had joined as expected.

    A node that other pods fill proves nothing; one without counted pods always does. Nor does one
    prove anything that rules between pods close to the pod, such as a spread over zones: it came
    for other pods of the kind. That is not so if EC2 chose its zone, which may be the wrong one.
    """
    view = builder.view
    if is_empty(builder, node):
        return True
    row = view.row_of[node.name]
    offer = view.offers[FleetKey(name=state.fleet, region=state.region)]
    used = builder.sim.allocatable[row] - builder.sim.free[row]
    if not (builder.sim.allocatable_of(offer.row) - used >= waiting.pod_class.requests).all():
        return False
    return has_zones(view, state) or _rules_allow(builder, waiting, row)


def is_closed(builder: PlanBuilder, waiting: Iterable[WaitingClass], node: Node) -> bool:
    """Return whether rules between pods close the node to all pods that wait."""
    row = builder.view.row_of[node.name]
    return not any(
        _rules_allow(builder, waiting_class, row) for waiting_class in waiting if waiting_class.left
    )


def _rules_allow(builder: PlanBuilder, waiting: WaitingClass, row: int) -> bool:
    """Return whether the rules between pods allow one more pod of the class on the row."""
    links = builder.sim.links(waiting.pod_class)
    anywhere = np.ones(builder.sim.rows, dtype=np.int64)
    return links.plain or bool(builder.sim.counter_room(links, anywhere)[row])
