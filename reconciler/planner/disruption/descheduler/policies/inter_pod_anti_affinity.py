"""RemovePodsViolatingInterPodAntiAffinity: proposes pods next to others that they exclude."""

from collections.abc import Mapping

import numpy as np

from reconciler.model.cluster import Pod, PodAffinityTerm
from reconciler.model.ids import NodeName
from reconciler.planner.descheduler_settings import InterPodAntiAffinity
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.topology import Topology


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
    """Return the rows where another pod breaks a term, with the key of the first such term.

    What a pod breaks that is being deleted ends by itself.
    """
    found: dict[int, str] = {}
    count = len(facts.view.nodes)
    links = facts.sim.links(pod_class).anti
    for term, (counter, itself) in reversed(list(zip(pod_class.anti_affinity, links, strict=True))):
        staying = counter.at_rows()[:count] - _deleted(term, counter.topology, facts)[:count]
        for row in (staying > int(itself)).nonzero()[0].tolist():
            found[row] = counter.topology.key
    return found


def _deleted(term: PodAffinityTerm, topology: Topology, facts: Facts) -> IntArray:
    """Return for each row how many pods of its domain match the term and are being deleted."""
    sim, domain = facts.sim, topology.domain
    matching = sim.matching(term.namespaces, term.selector)
    deleted = np.setdiff1d(matching, sim.staying(term.namespaces, term.selector))
    found = np.zeros(len(topology.values) + 1, dtype=np.int64)
    rows, amounts = sim.located(deleted)
    np.add.at(found, domain[rows], amounts)
    found[-1] = 0  # of rows without the label, whose domain is -1
    return found[domain]
