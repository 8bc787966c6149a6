"""What the policies of the descheduler read (`Facts`) and return (`Proposal`)."""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from operator import attrgetter

from reconciler.model.actions import PodPolicy
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import Labels
from reconciler.model.ids import NodeName, PodKey
from reconciler.planner.placement.arrays import BoolArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.kinds import with_zone_aliases
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.view import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The cluster at one moment, as the policies read it."""

    view: ClusterView
    sim: Simulation
    """The what-if cluster with everything that the plan has decided.

    Policies must not change it.
    """
    nodes: Sequence[Node]
    """The nodes whose pods may be proposed: ours, Ready and not leaving; sorted by name."""
    pods_on: Mapping[NodeName, Sequence[Pod]]
    """The pods that run or start on each node, sorted by name, including those of DaemonSets."""
    replicas: Sequence[Sequence[Pod]]
    """The pods of all nodes, without those of DaemonSets and those being deleted, in groups that
    share namespace, spec, labels and phase."""
    stays_for_good: Callable[[Pod], bool]
    """Whether a pod stays where it is until a person changes something."""
    moved: dict[PodKey, NodeName] = field(default_factory=dict)
    """The pods evicted so far in this plan, and the node on which each is expected. It grows."""

    @property
    def at(self) -> datetime:
        """Return the time of the plan."""
        return self.view.at

    def staying(self, pods: Sequence[Pod]) -> Sequence[Pod]:
        """Return the pods that no policy of this plan has evicted yet."""
        return [pod for pod in pods if pod.key not in self.moved] if self.moved else pods

    def expected_on(self, pods: Sequence[Pod]) -> Iterable[NodeName | None]:
        """Yield the node on which each pod runs or, if it was evicted, is expected."""
        nodes = map(attrgetter("node_name"), pods)
        if not self.moved:
            return nodes
        return (self.moved.get(pod.key, node) for pod, node in zip(pods, nodes, strict=True))

    def class_of(self, pod: Pod) -> PodClass:
        """Return the class of a running pod."""
        return self.view.table.of(pod, bound=True)

    def classes(self, replicas: Sequence[Pod]) -> Iterable[tuple[PodClass, Sequence[Pod]]]:
        """Return the pods of one group of `replicas` by class.

        The classes of such pods can differ by their volumes only.
        """
        if not replicas[0].traits.volumes:
            return ((self.class_of(replicas[0]), replicas),)
        return self.view.table.grouped(replicas)

    def labels_by_node(self) -> Mapping[NodeName, Labels]:
        """Return the labels of all nodes, with the missing ones of the two zone labels added."""
        return {name: with_zone_aliases(node.labels) for name, node in self.view.nodes.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One pod that a policy would evict, and why."""

    pod: Pod
    policy: PodPolicy
    reason: str
    """A sentence for people in which the pod is `it`."""
    better: BoolArray | None = field(default=None, compare=False)
    """The rows of the nodes that would be better; None if any other node will do."""
    leaves: bool = False
    """Whether kube-scheduler has to choose one of the better nodes; else it is enough that one has
    room."""
    balances: bool = False
    """Whether it is about how pods are distributed, not about the pod: then its node has to have
    settled."""


def find_replicas(view: ClusterView, nodes: Iterable[Node]) -> list[Sequence[Pod]]:
    """Return the pods of these nodes in groups of equals; see `Facts.replicas`.

    A policy can then decide once for hundreds of pods. Replicas share one object for their labels,
    so comparing by identity is enough.
    """
    names = {node.name for node in nodes}
    located = sum(map(len, chain(view.pods_on.values(), view.stuck_terminating_on.values())))
    everywhere = names.issuperset(view.pods_on) and located == sum(
        len(group.pods) for group in view.running
    )
    found: list[Sequence[Pod]] = []
    for group in view.running:
        traits = group.traits
        if traits.daemon or traits.mirror or traits.deleting:
            continue
        pods = group.pods
        if not everywhere:
            pods = [pod for pod in pods if pod.node_name in names]
        if len(set(map(id, map(attrgetter("labels"), pods)))) == 1:
            found.append(pods)
            continue
        by_labels: defaultdict[int, list[Pod]] = defaultdict(list)
        for pod in pods:
            by_labels[id(pod.labels)].append(pod)
        found += by_labels.values()
    return found


def by_first_name(pods: Sequence[Pod]) -> tuple[str, str]:
    """Return the sort key of a group of pods of one namespace: that and the first name."""
    return pods[0].key.namespace, min(map(attrgetter("key.name"), pods))


Proposals = Generator[Proposal, NodeName | None, None]
"""How a policy works: it yields a proposal and receives the node on which the pod is expected, or
None if the pod stays."""


def eviction_order(pod: Pod) -> tuple[object, ...]:
    """Return the sort key in which pods that are equal to a policy are evicted.

    By priority, then BestEffort before Burstable before Guaranteed, then the oldest.
    """
    qos = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}.get(pod.qos or "Burstable", 1)
    created = pod.created_at.timestamp() if pod.created_at is not None else 0.0
    return pod.spec.priority, qos, created, pod.key


def age_seconds(pod: Pod, at: datetime) -> float:
    """Return the age of the pod in seconds; 0 if it is unknown or negative."""
    return max(0.0, (at - pod.created_at).total_seconds()) if pod.created_at is not None else 0.0
