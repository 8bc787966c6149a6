"""RemovePodsViolatingInterPodAntiAffinity: pods beside others that they must not run beside."""

from reconciler.model.cluster import Node, Pod
from reconciler.planner.descheduler_settings import InterPodAntiAffinity
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)


def proposals(arguments: InterPodAntiAffinity, facts: Facts) -> Proposals:
    """Yield the pods whose own required anti-affinity another pod in the same domain breaks.

    Once one of two pods is gone, the other one may stay: each is looked at as things are then.
    Source: descheduler README, RemovePodsViolatingInterPodAntiAffinity, read 2026-11.
    """
    pods = [
        (node, pod)
        for node, pod in facts.pods()
        if pod.spec.pod_anti_affinity and arguments.scope.covers(pod)
    ]
    for node, pod in sorted(pods, key=lambda each: (eviction_order(each[1]), each[0].name)):
        key = _broken(node, pod, facts)
        if key:
            yield Proposal(
                pod=pod,
                policy="RemovePodsViolatingInterPodAntiAffinity",
                reason=f"its anti-affinity by {key} does not hold on {node.name}",
                leaves=True,
            )


def _broken(node: Node, pod: Pod, facts: Facts) -> str:
    """The topology key of the first of its terms that another pod breaks; empty when none does."""
    row = facts.view.row_of[node.name]
    pod_class = facts.view.table.of(pod, bound=True)
    for counter, itself in facts.sim.links(pod_class).anti:
        if int(counter.at_rows()[row]) > int(itself):
            return counter.topology.key
    return ""
