"""Rules between pods as the in-memory scheduler applies them: required terms and hard spread.

It was written from kube-scheduler's documentation, independently of the planner's filters, so that
tests find plans that rely on a wrong filter.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from reconciler.adapters.memory.bound_pods import BoundPods, OnNodes, matcher_of, spread_matcher_of
from reconciler.adapters.memory.scheduling import selects, untolerated
from reconciler.model.cluster import Node, Pod, PodSpec, TopologySpreadConstraint
from reconciler.model.ids import NodeName

CountingNodes = Callable[[PodSpec, TopologySpreadConstraint], Mapping[NodeName, Node]]
"""The nodes that a spread constraint of such pods counts."""


def has_rules(spec: PodSpec) -> bool:
    """Return whether such a pod has rules about where others are."""
    return bool(spec.pod_affinity or spec.pod_anti_affinity or spec.topology_spread)


def spread_counts(node: Node, spec: PodSpec, *, affinity: bool, taints: bool) -> bool:
    """Return whether spread of such pods counts a node at all.

    Args:
        node: The node.
        spec: The spec of the pods.
        affinity: Whether their node selector and affinity are honoured (nodeAffinityPolicy).
        taints: Whether the node's taints are (nodeTaintsPolicy); a cordon is one of them.
    """
    if affinity and not selects(spec, node):
        return False
    return not taints or (
        node.ready and not node.unschedulable and not untolerated(node.taints, spec.tolerations)
    )


class Neighbours:
    """What the rules of one pod, and those of others about it, require at one moment.

    It is computed once and then asked for each node.

    Args:
        pod: The pod to place.
        nodes: All nodes.
        bound_pods: The bound pods.
        counting: Returns the nodes that its spread counts.
    """

    def __init__(
        self,
        pod: Pod,
        nodes: Mapping[NodeName, Node],
        bound_pods: BoundPods,
        counting: CountingNodes,
    ) -> None:
        self._pod, self._nodes, self._bound_pods = pod, nodes, bound_pods
        self._apart: list[tuple[str, set[str]]] = []
        """Forbidden domains, by topology key."""
        self._near: list[tuple[str, set[str] | None]] = []
        """Domains of which one is required; None: any."""
        self._spread: list[tuple[str, Counter[str], int]] = []
        """Pods in each domain, and how many of them are too many."""
        self._never = False
        self._keep_apart()
        self._keep_near()
        self._keep_spread(counting)

    def allow(self, node: Node) -> bool:
        """Return whether the pod may be placed on the node."""
        labels = node.labels
        for key, domains in self._apart:
            if labels.get(key) in domains:
                return False
        for key, wanted in self._near:
            if key not in labels or not (wanted is None or labels[key] in wanted):
                return False
        for key, counts, too_many in self._spread:
            here = labels.get(key)
            if here is None or counts[here] >= too_many:
                return False
        return not self._never

    def _keep_apart(self) -> None:
        bound_pods = self._bound_pods
        matchers = [
            (t.topology_key, matcher_of(t, self._pod)) for t in self._pod.spec.pod_anti_affinity
        ]
        own = [
            (key, bound_pods.counted((pod_matcher,)))
            for key, pod_matcher in matchers
            if pod_matcher is not None
        ]
        for key, on in [*own, *bound_pods.against(self._pod)]:
            if domains := self._domains(key, on):
                self._apart.append((key, domains))

    def _keep_near(self) -> None:
        """Apply affinity: only pods that match all terms count; the first may go anywhere."""
        terms = self._pod.spec.pod_affinity
        if not terms:
            return
        matchers = [matcher_of(term, self._pod) for term in terms]
        every = tuple(matcher for matcher in matchers if matcher is not None)
        if len(every) < len(terms):
            self._never = True
            return
        on = self._bound_pods.counted(every)
        found = [(term.topology_key, self._domains(term.topology_key, on)) for term in terms]
        namespace, labels = self._pod.key.namespace, self._pod.labels
        if not any(domains for _, domains in found) and all(
            pod_matcher.matches(namespace, labels) for pod_matcher in every
        ):
            self._near += [(key, None) for key, _ in found]
        else:
            self._near += found

    def _keep_spread(self, counting: CountingNodes) -> None:
        """Apply spread: nodes with the keys of all constraints count, and pods that stay."""
        rules = [rule for rule in self._pod.spec.topology_spread if rule.hard]
        keys = {rule.topology_key for rule in rules}
        for rule in rules:
            counts: Counter[str] = Counter()
            matcher = spread_matcher_of(rule, self._pod)
            on = self._bound_pods.counted((matcher,), deleting=False) if matcher is not None else {}
            for name, node in counting(self._pod.spec, rule).items():
                labels = node.labels
                if all(key in labels for key in keys):
                    counts[labels[rule.topology_key]] += on.get(name, 0)
            least = min(counts.values()) if len(counts) >= max(1, rule.min_domains) else 0
            itself = matcher is not None and matcher.matches(
                self._pod.key.namespace, self._pod.labels
            )
            self._spread.append((rule.topology_key, counts, least + rule.max_skew + 1 - itself))

    def _domains(self, key: str, on: OnNodes) -> set[str]:
        """Return the domains of a topology key that have any of these pods."""
        nodes = [self._nodes[name] for name in on if name in self._nodes]
        return {node.labels[key] for node in nodes if key in node.labels}
