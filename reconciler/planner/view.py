"""ClusterView: the facts of one snapshot, joined and sorted, as every policy reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import FleetKey, InstanceId, NodeName, PodKey
from reconciler.model.snapshot import Snapshot
from reconciler.planner.demand import Demand
from reconciler.planner.fleets.inventory import FleetStatus, Inventory
from reconciler.planner.fleets.new_nodes.daemons_that_fit import Daemons
from reconciler.planner.fleets.new_nodes.new_node import NewNode
from reconciler.planner.fleets.spot.spot_return import SpotReturn
from reconciler.planner.placement.classes import ClassTable
from reconciler.planner.pod_groups import PodGroup
from reconciler.planner.settings import PlannerSettings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterView:
    """The facts of one snapshot. Policies only read it, and write through the PlanBuilder."""

    snapshot: Snapshot
    settings: PlannerSettings
    inventory: Inventory
    table: ClassTable
    """The classes of all pods. It caches answers, which do not depend on that."""
    demand: Demand
    nodes: Mapping[NodeName, Node]
    """Sorted by name."""
    row_of: Mapping[NodeName, int]
    """The row of each node in the what-if cluster."""
    offers: Mapping[FleetKey, NewNode]
    """A new node of each fleet, as an offer."""
    daemons: Daemons
    """The DaemonSets' pods, of which each new node gets those that select it."""
    running: Sequence[PodGroup]
    """Bound pods that are not finished, in groups."""
    pods_on: Mapping[NodeName, Sequence[Pod]]
    """The same by node, without pods that are stuck terminating: they keep no node."""
    nodes_in_use: frozenset[NodeName]
    """The nodes with a counted pod among these."""
    draining: frozenset[NodeName]
    """The nodes with our draining taint."""
    stuck_terminating_on: Mapping[NodeName, Sequence[Pod]]
    """By node the pods that are stuck terminating (see `disruption.drains.stuck_terminating`)."""
    finished_on: Mapping[NodeName, Sequence[Pod]]
    statuses: Mapping[FleetKey, FleetStatus]
    displaced: Mapping[PodKey, NodeName] = field(default_factory=dict)
    """Pods that count as demand although they run: EC2 takes their node back."""
    spot_returns: Sequence[SpotReturn] = ()
    """Spot fleets for which on-demand nodes stand in, while `spot_return` is on."""
    unequipped: frozenset[NodeName] = frozenset()
    """Nodes whose devices are not registered yet: pods wait for them, and none is moved there."""
    refused_ends: Mapping[InstanceId, datetime] = field(default_factory=dict)
    """Instances protected from termination, and when EC2 last refused to end them."""

    @property
    def at(self) -> datetime:
        """Return the time of the plan."""
        return self.snapshot.at

    def stuck_terminating(self, node: NodeName) -> tuple[PodKey, ...]:
        """Return the pods on a node that are stuck terminating, by name."""
        return tuple(sorted(pod.key for pod in self.stuck_terminating_on.get(node, ())))
