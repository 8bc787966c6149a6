"""RemovePodsViolatingTopologySpreadConstraint: pods that make a spread more uneven than allowed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from reconciler.model.cluster import Node, Pod, TopologySpreadConstraint
from reconciler.model.ids import NodeName
from reconciler.planner.descheduler_settings import TopologySpread
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)
from reconciler.planner.placement.arrays import BoolArray
from reconciler.planner.placement.filters.static import eligible_for_spread
from reconciler.planner.placement.kinds import with_zone_aliases


def proposals(arguments: TopologySpread, facts: Facts) -> Proposals:
    """Yield pods of the fullest domains, until each holds at most `maxSkew` more than the emptiest.

    Source: descheduler README, RemovePodsViolatingTopologySpreadConstraint, read 2026-11.
    """
    for constraint, pods in _constraints(arguments, facts):
        yield from _Balance(constraint, pods, facts).proposals()


def _constraints(
    arguments: TopologySpread, facts: Facts
) -> Iterator[tuple[TopologySpreadConstraint, list[Pod]]]:
    """Yield each constraint with the pods that have it."""
    found: dict[tuple[str, TopologySpreadConstraint, int], list[Pod]] = defaultdict(list)
    for _, pod in facts.pods():
        if not pod.spec.topology_spread or not arguments.scope.covers(pod):
            continue
        pod_class = facts.view.table.of(pod, bound=True)
        of_class = [*(pod_class.spread if arguments.hard else ())]
        of_class += pod_class.soft_spread if arguments.soft else ()
        for constraint in of_class:
            found[pod.key.namespace, constraint, pod_class.static].append(pod)
    for (_, constraint, _), pods in sorted(
        found.items(), key=lambda each: min(pod.key for pod in each[1])
    ):
        yield constraint, pods


class _Balance:
    """The domains of one constraint.

    Args:
        constraint: As the pods' classes have it.
        pods: The pods that have it, and so may go for it.
        facts: The cluster.
    """

    def __init__(
        self, constraint: TopologySpreadConstraint, pods: Sequence[Pod], facts: Facts
    ) -> None:
        self._constraint = constraint
        self._facts = facts
        self._pod_class = facts.view.table.of(pods[0], bound=True)
        nodes = facts.view.nodes
        self._known: dict[int, bool] = {}
        """Whether nodes of a kind count, by its number."""
        domains = {name: self._domain(node) for name, node in nodes.items()}
        self._domain_of: Mapping[NodeName, str] = {
            name: value for name, value in domains.items() if value and self._is_eligible(name)
        }
        self._sizes = dict.fromkeys(self._domain_of.values(), 0)
        namespace = pods[0].key.namespace
        for name, value in self._domain_of.items():
            self._sizes[value] += sum(
                _counts(pod, namespace, constraint) for pod in facts.view.pods_on.get(name, ())
            )
        self._movable: dict[str, list[Pod]] = defaultdict(list)
        for pod in sorted(pods, key=eviction_order, reverse=True):
            home = self._domain_of.get(pod.node_name) if pod.node_name is not None else None
            if home is not None and _counts(pod, namespace, constraint):
                self._movable[home].append(pod)

    def _domain(self, node: Node) -> str:
        return with_zone_aliases(node.labels).get(self._constraint.topology_key, "")

    def _is_eligible(self, name: NodeName) -> bool:
        """Whether the constraint counts the node (nodeAffinityPolicy, nodeTaintsPolicy)."""
        sim, constraint = self._facts.sim, self._constraint
        number = int(sim.kinds[self._facts.view.row_of[name]])
        if number not in self._known:
            self._known[number] = eligible_for_spread(
                sim.table.statics[self._pod_class.static],
                sim.kind_table.kinds[number],
                honor_affinity=constraint.honor_node_affinity,
                honor_taints=constraint.honor_node_taints,
            )
        return self._known[number]

    def proposals(self) -> Proposals:
        """Yield one pod after the other, each from the fullest domain that can still give one."""
        while True:
            least = self._least()
            uneven = [
                value
                for value, pods in self._movable.items()
                if pods and self._sizes[value] - least > self._constraint.max_skew
            ]
            if not uneven:
                return
            fullest = max(uneven, key=lambda value: (self._sizes[value], value))
            pod = self._movable[fullest].pop()
            place = yield Proposal(
                pod=pod,
                policy="RemovePodsViolatingTopologySpreadConstraint",
                reason=(
                    f"{self._constraint.topology_key}={fullest} holds {self._sizes[fullest]} such "
                    f"pods and another domain {least}, maxSkew is {self._constraint.max_skew}"
                ),
                better=self._smaller(fullest),
                leaves=True,
                balances=True,
            )
            if place is not None:
                self._sizes[fullest] -= 1
                self._sizes[self._domain_of[place]] += 1

    def _least(self) -> int:
        if len(self._sizes) < self._constraint.min_domains:
            return 0
        return min(self._sizes.values(), default=0)

    def _smaller(self, fullest: str) -> BoolArray:
        """Rows of domains that are still smaller when the pod has come."""
        most = self._sizes[fullest] - 2
        names = self._facts.view.nodes
        domains = [self._domain_of.get(name) for name in names]
        return np.array([d is not None and self._sizes[d] <= most for d in domains], dtype=np.bool_)


def _counts(pod: Pod, namespace: str, constraint: TopologySpreadConstraint) -> bool:
    """Whether the constraint counts the pod."""
    if pod.deleting or pod.key.namespace != namespace or constraint.selector is None:
        return False
    return constraint.selector.matches(pod.labels)
