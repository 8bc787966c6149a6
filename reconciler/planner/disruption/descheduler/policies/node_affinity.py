"""RemovePodsViolatingNodeAffinity: proposes pods whose node affinity no longer fits their node."""

from collections.abc import Mapping

import numpy as np

from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import Labels
from reconciler.model.ids import NodeName
from reconciler.planner.descheduler_settings import NodeAffinity
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)
from reconciler.planner.placement.filters.node_affinity import selects


def proposals(arguments: NodeAffinity, facts: Facts) -> Proposals:
    """Yield the pods whose required (on request also preferred) node affinity favours other nodes.

    Source: descheduler README, RemovePodsViolatingNodeAffinity, read 2026-11.
    """
    pods = [
        (facts.view.nodes[pod.node_name], pod)
        for replicas in facts.replicas
        if (replicas[0].spec.node_affinity is not None or replicas[0].spec.node_preferences)
        and arguments.scope.covers(replicas[0])
        for pod in replicas
        if pod.node_name is not None
    ]
    labels = facts.labels_by_node() if pods else {}
    for node, pod in sorted(pods, key=lambda each: (each[0].name, eviction_order(each[1]))):
        required = arguments.required and pod.spec.node_affinity is not None
        if required and not _holds(pod, node.name, labels[node.name]):
            yield Proposal(
                pod=pod,
                policy="RemovePodsViolatingNodeAffinity",
                reason=f"its required node affinity does not choose {node.name}",
                leaves=True,
            )
        elif arguments.preferred and pod.spec.node_preferences:
            yield from _preferring_others(node, pod, facts, labels)


def _holds(pod: Pod, name: NodeName, labels: Labels) -> bool:
    """Return whether nodeSelector and required node affinity allow the node as it is now."""
    affinity = pod.spec.node_affinity
    return selects(pod.spec.node_selector, labels) and (
        affinity is None or affinity.matches(labels, name)
    )


def _preferring_others(
    node: Node, pod: Pod, facts: Facts, labels: Mapping[NodeName, Labels]
) -> Proposals:
    """Yield the pod if it prefers other nodes to its own."""
    weights = np.array([_weight(pod, name, labels[name]) for name in facts.view.nodes])
    own = weights[facts.view.row_of[node.name]]
    if (weights > own).any():
        yield Proposal(
            pod=pod,
            policy="RemovePodsViolatingNodeAffinity",
            reason=f"its preferred node affinity scores {own} on {node.name} and more elsewhere",
            better=weights > own,
            leaves=True,
        )


def _weight(pod: Pod, name: NodeName, labels: Labels) -> int:
    return sum(p.weight for p in pod.spec.node_preferences if p.term.matches(labels, name))
