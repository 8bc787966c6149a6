"""RemovePodsViolatingNodeAffinity: pods on nodes that their node affinity would not choose now."""

import numpy as np

from reconciler.model.cluster import Node, Pod
from reconciler.planner.descheduler_settings import NodeAffinity
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)
from reconciler.planner.placement.filters.node_affinity import selects
from reconciler.planner.placement.kinds import with_zone_aliases


def proposals(arguments: NodeAffinity, facts: Facts) -> Proposals:
    """Yield the pods whose required, on request preferred, node affinity speaks for other nodes.

    Source: descheduler README, RemovePodsViolatingNodeAffinity, read 2026-11.
    """
    pods = [(node, pod) for node, pod in facts.pods() if arguments.scope.covers(pod)]
    for node, pod in sorted(pods, key=lambda each: (each[0].name, eviction_order(each[1]))):
        if arguments.required and pod.spec.node_affinity is not None and not _holds(pod, node):
            yield Proposal(
                pod=pod,
                policy="RemovePodsViolatingNodeAffinity",
                reason=f"its required node affinity does not choose {node.name}",
                leaves=True,
            )
        elif arguments.preferred and pod.spec.node_preferences:
            yield from _preferring_others(node, pod, facts)


def _holds(pod: Pod, node: Node) -> bool:
    """Whether nodeSelector and required node affinity choose the node as it is now."""
    labels = with_zone_aliases(node.labels)
    affinity = pod.spec.node_affinity
    return selects(pod.spec.node_selector, labels) and (
        affinity is None or affinity.matches(labels, node.name)
    )


def _preferring_others(node: Node, pod: Pod, facts: Facts) -> Proposals:
    """Yield the pod when it prefers other nodes to its own."""
    weights = np.array([_weight(pod, each) for each in facts.view.nodes.values()])
    own = weights[facts.view.row_of[node.name]]
    if (weights > own).any():
        yield Proposal(
            pod=pod,
            policy="RemovePodsViolatingNodeAffinity",
            reason=f"its preferred node affinity counts {own} on {node.name} and more elsewhere",
            better=weights > own,
            leaves=True,
        )


def _weight(pod: Pod, node: Node) -> int:
    labels = with_zone_aliases(node.labels)
    return sum(p.weight for p in pod.spec.node_preferences if p.term.matches(labels, node.name))
