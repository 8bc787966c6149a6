"""Rules between pods as the in-memory scheduler keeps them: required terms and hard spread.

Written from kube-scheduler's description, apart from the planner's filters, so that a plan that
relies on a wrong one is seen. The anti-affinity of pods that are bound, and terms over other
namespaces, are left out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from reconciler.model.cluster import Node, Pod, PodSpec
from reconciler.model.ids import NodeName
from reconciler.model.selectors import LabelSelector


def has_rules(spec: PodSpec) -> bool:
    """Whether where such a pod may go depends on where others are."""
    return bool(spec.pod_affinity or spec.pod_anti_affinity or spec.topology_spread)


def obeys(pod: Pod, node: Node, nodes: Mapping[NodeName, Node], bound: Iterable[Pod]) -> bool:
    """Whether the pod may join the node, given the pods that are bound."""
    spec = pod.spec
    if not has_rules(spec):
        return True
    others = [each for each in bound if each.key.namespace == pod.key.namespace]
    for term in spec.pod_anti_affinity:
        here = node.labels.get(term.topology_key)
        if here is not None and _counted(others, nodes, term.topology_key, term.selector)[here]:
            return False
    for term in spec.pod_affinity:
        domains = _counted(others, nodes, term.topology_key, term.selector)
        first = not domains and _selects(term.selector, pod)
        here = node.labels.get(term.topology_key)
        if here is None or not (first or domains[here]):
            return False
    for rule in spec.topology_spread:
        here = node.labels.get(rule.topology_key)
        if rule.hard and here is None:
            return False
        counts = _counted(others, nodes, rule.topology_key, rule.selector)
        known = {
            n.labels[rule.topology_key] for n in nodes.values() if rule.topology_key in n.labels
        }
        least = min((counts[domain] for domain in known), default=0)
        least = 0 if len(known) < rule.min_domains else least
        itself = int(_selects(rule.selector, pod))
        if rule.hard and here is not None and counts[here] + itself - least > rule.max_skew:
            return False
    return True


def _selects(selector: LabelSelector | None, pod: Pod) -> bool:
    return selector is not None and selector.matches(pod.labels)


def _counted(
    pods: Iterable[Pod], nodes: Mapping[NodeName, Node], key: str, selector: LabelSelector | None
) -> Counter[str]:
    """Pods that the selector matches, by domain."""
    counts: Counter[str] = Counter()
    for pod in pods:
        node = nodes.get(pod.node_name) if pod.node_name is not None else None
        if node is not None and not pod.finished and _selects(selector, pod):
            counts[node.labels.get(key, "")] += 1
    return counts
