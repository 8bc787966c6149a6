"""RemovePodsViolatingInterPodAntiAffinity: pods beside others that they must not run beside."""

from reconciler.planner.descheduler_settings import InterPodAntiAffinity
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)
from reconciler.planner.placement.classes import PodClass


def proposals(arguments: InterPodAntiAffinity, facts: Facts) -> Proposals:
    """Yield the pods whose own required anti-affinity another pod in the same domain breaks.

    Once one of two pods is gone, the other one may stay: each is looked at as things are then.
    Source: descheduler README, RemovePodsViolatingInterPodAntiAffinity, read 2026-11.
    """
    pods = [
        (node, pod)
        for node, pod in facts.pods
        if pod.spec.pod_anti_affinity and arguments.scope.covers(pod)
    ]
    broken: dict[int, tuple[str, ...]] = {}
    """By class: for each row the key of a term that does not hold there; as things are now."""
    for node, pod in sorted(pods, key=lambda each: (eviction_order(each[1]), each[0].name)):
        pod_class = facts.view.table.of(pod, bound=True)
        if pod_class.number not in broken:
            broken[pod_class.number] = _broken(pod_class, facts)
        key = broken[pod_class.number][facts.view.row_of[node.name]]
        if key:
            place = yield Proposal(
                pod=pod,
                policy="RemovePodsViolatingInterPodAntiAffinity",
                reason=f"its anti-affinity by {key} does not hold on {node.name}",
                leaves=True,
            )
            if place is not None:
                broken.clear()


def _broken(pod_class: PodClass, facts: Facts) -> tuple[str, ...]:
    """For each row the key of the first term that another pod breaks there; empty without one."""
    found = [""] * len(facts.view.nodes)
    for counter, itself in reversed(facts.sim.links(pod_class).anti):
        for row in (counter.at_rows()[: len(found)] > int(itself)).nonzero()[0].tolist():
            found[row] = counter.topology.key
    return tuple(found)
