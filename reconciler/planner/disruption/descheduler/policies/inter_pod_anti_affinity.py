"""RemovePodsViolatingInterPodAntiAffinity: proposes pods next to others that they exclude."""

from collections.abc import Mapping

from reconciler.model.cluster import Pod
from reconciler.model.ids import NodeName
from reconciler.planner.descheduler_settings import InterPodAntiAffinity
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)
from reconciler.planner.placement.classes import PodClass


def proposals(arguments: InterPodAntiAffinity, facts: Facts) -> Proposals:
    """Yield the pods whose own required anti-affinity is broken by another pod in the same domain.

    Once one of two pods is evicted the other may stay: each is checked after those before it.

    Source: descheduler README, RemovePodsViolatingInterPodAntiAffinity, read 2026-11.
    """
    broken: dict[int, Mapping[int, str]] = {}
    """By class: the rows where a term is broken now, with the topology key of that term."""
    row_of = facts.view.row_of
    pods: list[tuple[Pod, NodeName]] = []
    for replicas in facts.replicas:
        if not (replicas[0].spec.pod_anti_affinity and arguments.scope.covers(replicas[0])):
            continue
        for pod_class, members in facts.classes(replicas):
            rows = broken[pod_class.number] = _broken_rows(pod_class, facts)
            named = ((p, p.node_name) for p in (members if rows else ()) if p.node_name is not None)
            pods += [(pod, node) for pod, node in named if row_of[node] in rows]
    for pod, node in sorted(pods, key=lambda each: (eviction_order(each[0]), each[1])):
        pod_class = facts.class_of(pod)
        if pod_class.number not in broken:
            broken[pod_class.number] = _broken_rows(pod_class, facts)
        key = broken[pod_class.number].get(row_of[node])
        if key is not None:
            place = yield Proposal(
                pod=pod,
                policy="RemovePodsViolatingInterPodAntiAffinity",
                reason=f"its anti-affinity by {key} does not hold on {node}",
                leaves=True,
            )
            if place is not None:
                broken.clear()


def _broken_rows(pod_class: PodClass, facts: Facts) -> Mapping[int, str]:
    """Return the rows where another pod breaks a term, with the key of the first such term."""
    found: dict[int, str] = {}
    count = len(facts.view.nodes)
    for counter, itself in reversed(facts.sim.links(pod_class).anti):
        for row in (counter.at_rows()[:count] > int(itself)).nonzero()[0].tolist():
            found[row] = counter.topology.key
    return found
