"""What the policies of the descheduler read, and what they say."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.actions import PodPolicy
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import Labels
from reconciler.model.ids import NodeName
from reconciler.planner.placement.arrays import BoolArray
from reconciler.planner.placement.kinds import with_zone_aliases
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.view import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One moment of the cluster, as the policies read it."""

    view: ClusterView
    sim: Simulation
    """The what-if cluster with all that the plan has decided; only asked."""
    nodes: Sequence[Node]
    """The nodes whose pods are looked at, by name: ours, Ready, and none that leaves."""
    pods_on: Mapping[NodeName, Sequence[Pod]]
    """Pods that run there or start, by name; DaemonSets' too."""
    pods: Sequence[tuple[Node, Pod]]
    """The pods of all nodes, without those of DaemonSets and those being deleted."""

    @property
    def at(self) -> datetime:
        """The clock."""
        return self.view.at

    def labels_by_node(self) -> Mapping[NodeName, Labels]:
        """Return the labels of the nodes, the names of the zone label that are missing added."""
        return {name: with_zone_aliases(node.labels) for name, node in self.view.nodes.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One pod that a policy would evict."""

    pod: Pod
    policy: PodPolicy
    reason: str
    """A sentence for people, about the pod as `it`."""
    better: BoolArray | None = field(default=None, compare=False)
    """Rows of the nodes that would be better; None: any other node that takes it."""
    leaves: bool = False
    """Whether kube-scheduler has to choose one of the better nodes; else it only has to exist."""
    balances: bool = False
    """Whether it is about where pods are and not about the pod: its node has to have settled."""


Proposals = Generator[Proposal, NodeName | None, None]
"""Policies yield proposals, and are told where the pod is expected, or None when it stays."""


def eviction_order(pod: Pod) -> tuple[object, ...]:
    """The order in which pods that are equal to a policy go.

    By priority, then BestEffort before Burstable before Guaranteed, then the oldest.
    """
    qos = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}.get(pod.qos or "Burstable", 1)
    created = pod.created_at.timestamp() if pod.created_at is not None else 0.0
    return pod.spec.priority, qos, created, pod.key


def age_seconds(pod: Pod, at: datetime) -> float:
    """How long ago the pod was made; 0 when that is not known, or in the future."""
    return max(0.0, (at - pod.created_at).total_seconds()) if pod.created_at is not None else 0.0
