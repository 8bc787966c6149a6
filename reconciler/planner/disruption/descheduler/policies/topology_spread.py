"""RemovePodsViolatingTopologySpreadConstraint: proposes pods of domains with too many of them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from reconciler.model.cluster import Pod, TopologySpreadConstraint
from reconciler.planner.descheduler_settings import TopologySpread
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    by_first_name,
    eviction_order,
)
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters.static import eligible_kinds
from reconciler.planner.placement.kinds import label_of


def proposals(arguments: TopologySpread, facts: Facts) -> Proposals:
    """Yield pods of the fullest domains, until each holds at most `maxSkew` more than the emptiest.

    Source: descheduler README, RemovePodsViolatingTopologySpreadConstraint, read 2026-11.
    """
    domains = _Domains(facts)
    for constraint, pods in _constraints(arguments, facts):
        yield from _Balance(constraint, pods, facts, domains).proposals()


def _constraints(
    arguments: TopologySpread, facts: Facts
) -> Iterator[tuple[TopologySpreadConstraint, list[Pod]]]:
    """Yield each constraint with the pods that have it."""
    found: dict[tuple[str, TopologySpreadConstraint, int], list[Pod]] = defaultdict(list)
    for replicas in facts.replicas:
        first = replicas[0]
        if not first.spec.topology_spread or not arguments.scope.covers(first):
            continue
        for pod_class, pods in facts.classes(replicas):
            of_class = [*(pod_class.spread if arguments.hard else ())]
            of_class += pod_class.soft_spread if arguments.soft else ()
            for constraint in of_class:
                found[first.key.namespace, constraint, pod_class.static] += pods
    for (_, constraint, _), pods in sorted(found.items(), key=lambda each: by_first_name(each[1])):
        yield constraint, pods


class _Domains:
    """The nodes by topology domain, computed once per key."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._eligible: dict[tuple[int, bool, bool], BoolArray] = {}
        self._known: dict[str, tuple[IntArray, list[str]]] = {}

    def of(self, key: str) -> tuple[IntArray, list[str]]:
        """Return each row's domain number (-1 for none), and the values of the domains."""
        if key not in self._known:
            stated = [label_of(n.labels, key) or "" for n in self._facts.view.nodes.values()]
            values = sorted(set(stated) - {""})
            number = {value: i for i, value in enumerate(values)}
            domain = np.array([number.get(value, -1) for value in stated], dtype=np.int64)
            self._known[key] = domain, values
        return self._known[key]

    def eligible(self, pod_class: PodClass, constraint: TopologySpreadConstraint) -> BoolArray:
        """Return the nodes that a constraint counts (nodeAffinityPolicy, nodeTaintsPolicy)."""
        honors = constraint.honor_node_affinity, constraint.honor_node_taints
        key = (pod_class.static, *honors)
        if key not in self._eligible:
            self._eligible[key] = _eligible(pod_class, constraint, self._facts)
        return self._eligible[key]


class _Balance:
    """The pods of one constraint by domain.

    Args:
        constraint: The constraint, as the pods' classes have it.
        pods: The pods that have it, which may therefore be evicted.
        facts: The cluster.
        domains: The domains of its nodes.
    """

    def __init__(
        self,
        constraint: TopologySpreadConstraint,
        pods: Sequence[Pod],
        facts: Facts,
        domains: _Domains,
    ) -> None:
        self._constraint = constraint
        self._pods = pods
        self._facts = facts
        domain, self._values = domains.of(constraint.topology_key)
        pod_class = facts.view.table.of(pods[0], bound=True)
        self._domain = np.where(domains.eligible(pod_class, constraint), domain, -1)
        self._sizes = np.zeros(len(self._values), dtype=np.int64)
        namespace = frozenset({pods[0].key.namespace})
        rows, amounts = facts.sim.located(facts.sim.staying(namespace, constraint.selector))
        here = rows < len(self._domain)
        at = self._domain[rows[here]]
        np.add.at(self._sizes, at[at >= 0], amounts[here][at >= 0])
        nodes = np.bincount(self._domain[self._domain >= 0], minlength=len(self._values))
        self._present = nodes.nonzero()[0]

    def proposals(self) -> Proposals:
        """Yield one pod at a time, each from the fullest domain that can still give one."""
        if not self._is_uneven():
            return
        movable = self._movable()
        while True:
            least, most = self._least(), self._constraint.max_skew
            uneven = [d for d, pods in movable.items() if pods and self._sizes[d] - least > most]
            if not uneven:
                return
            fullest = max(uneven, key=lambda d: (self._sizes[d], d))
            pod = movable[fullest].pop()
            value = self._values[fullest]
            place = yield Proposal(
                pod=pod,
                policy="RemovePodsViolatingTopologySpreadConstraint",
                reason=(
                    f"{self._constraint.topology_key}={value} holds {self._sizes[fullest]} such "
                    f"pods and another domain {least}, maxSkew is {most}"
                ),
                better=(self._domain >= 0)
                & (self._sizes[self._domain] <= self._sizes[fullest] - 2),
                leaves=True,
                balances=True,
            )
            if place is not None:
                self._sizes[fullest] -= 1
                self._sizes[self._domain[self._facts.view.row_of[place]]] += 1

    def _is_uneven(self) -> bool:
        most = int(self._sizes.max(initial=0))
        return bool(len(self._present)) and most - self._least() > self._constraint.max_skew

    def _movable(self) -> dict[int, list[Pod]]:
        """Return the pods of each domain that the constraint counts; the last of each go first."""
        found: dict[int, list[Pod]] = defaultdict(list)
        selector, row_of = self._constraint.selector, self._facts.view.row_of
        for pod in sorted(self._facts.staying(self._pods), key=eviction_order, reverse=True):
            home = int(self._domain[row_of[pod.node_name]]) if pod.node_name is not None else -1
            if home >= 0 and selector is not None and selector.matches(pod.labels):
                found[home].append(pod)
        return found

    def _least(self) -> int:
        """Return the number of pods in the emptiest domain; 0 below minDomains domains."""
        if len(self._present) < self._constraint.min_domains:
            return 0
        return int(self._sizes[self._present].min(initial=0 if not len(self._present) else 2**31))


def _eligible(pod_class: PodClass, constraint: TopologySpreadConstraint, facts: Facts) -> BoolArray:
    """Return rows of nodes that the constraint counts (nodeAffinityPolicy, nodeTaintsPolicy)."""
    sim = facts.sim
    kinds = sim.kinds[: len(facts.view.nodes)]
    found = eligible_kinds(
        sim.table.statics[pod_class.static],
        sim.kind_table,
        0,
        honor_affinity=constraint.honor_node_affinity,
        honor_taints=constraint.honor_node_taints,
    )
    return np.array(found, dtype=np.bool_)[kinds]
