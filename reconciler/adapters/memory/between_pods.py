"""Rules between pods as the in-memory scheduler keeps them: required terms and hard spread.

Written from kube-scheduler's description, apart from the planner's filters, so that a plan that
relies on a wrong one is seen. The anti-affinity of pods that are bound, and terms over other
namespaces, are left out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from reconciler.model.cluster import (
    Node,
    Pod,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
)
from reconciler.model.ids import NodeName
from reconciler.model.selectors import LabelSelector


def has_rules(spec: PodSpec) -> bool:
    """Whether where such a pod may go depends on where others are."""
    return bool(spec.pod_affinity or spec.pod_anti_affinity or spec.topology_spread)


class Neighbours:
    """What the rules of one pod count, at one moment: counted once, asked for each node.

    Args:
        pod: Who is to be placed.
        nodes: All nodes.
        bound: Pods, of which those that are bound count.
    """

    def __init__(self, pod: Pod, nodes: Mapping[NodeName, Node], bound: Iterable[Pod]) -> None:
        self._pod, self._nodes = pod, nodes
        self._others = [
            each
            for each in bound
            if each.node_name is not None
            and not each.finished
            and each.key.namespace == pod.key.namespace
        ]
        spec = pod.spec
        self._apart = [(t.topology_key, self._counted(t)) for t in spec.pod_anti_affinity]
        self._near = [
            (t.topology_key, found, not found and _selects(t.selector, pod))
            for t in spec.pod_affinity
            for found in [self._counted(t)]
        ]
        self._spread = [
            (rule, self._counted(rule), self._least(rule), int(_selects(rule.selector, pod)))
            for rule in spec.topology_spread
            if rule.hard
        ]

    def allow(self, node: Node) -> bool:
        """Whether the pod may join the node."""
        labels = node.labels
        for key, counts in self._apart:
            if key in labels and counts[labels[key]]:
                return False
        for key, counts, first in self._near:
            if key not in labels or not (first or counts[labels[key]]):
                return False
        for rule, counts, least, itself in self._spread:
            here = labels.get(rule.topology_key)
            if here is None or counts[here] + itself - least > rule.max_skew:
                return False
        return True

    def _least(self, rule: TopologySpreadConstraint) -> int:
        """The fewest pods that any domain has."""
        key = rule.topology_key
        known = {n.labels[key] for n in self._nodes.values() if key in n.labels}
        if len(known) < rule.min_domains:
            return 0
        counts = self._counted(rule)
        return min((counts[domain] for domain in known), default=0)

    def _counted(self, rule: PodAffinityTerm | TopologySpreadConstraint) -> Counter[str]:
        """Pods that the rule selects, by domain."""
        counts: Counter[str] = Counter()
        for pod in self._others:
            node = self._nodes.get(pod.node_name) if pod.node_name is not None else None
            if node is not None and _selects(rule.selector, pod):
                counts[node.labels.get(rule.topology_key, "")] += 1
        return counts


def _selects(selector: LabelSelector | None, pod: Pod) -> bool:
    return selector is not None and selector.matches(pod.labels)
