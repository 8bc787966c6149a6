"""HighNodeUtilization: proposes the pods of under-used nodes, so that these become empty."""

from reconciler.model.cluster import Node
from reconciler.planner.descheduler_settings import HighNodeUtilization
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)
from reconciler.planner.disruption.descheduler.usage import Usage, shown


def proposals(arguments: HighNodeUtilization, facts: Facts) -> Proposals:
    """Yield the pods of under-used nodes, the emptiest node first.

    They are expected on nodes above the thresholds only.
    Source: descheduler README, HighNodeUtilization, read 2026-11.
    """
    usage = Usage(facts, arguments.thresholds)
    better = usage.looked_at & ~usage.below(arguments.thresholds)
    for node in nodes_to_empty(arguments, facts, usage):
        pods = facts.staying(facts.pods_on.get(node.name, ()))
        for pod in sorted(pods, key=eviction_order):
            if pod.daemon or pod.mirror or pod.deleting or not arguments.scope.covers(pod):
                continue
            percents = usage.percents(node.name)
            place = yield Proposal(
                pod=pod,
                policy="HighNodeUtilization",
                reason=f"{node.name} is under-used: {shown(percents)}",
                better=better,
                leaves=True,
                balances=True,
            )
            if place is not None:
                usage.move(pod, node.name, place)


def nodes_to_empty(
    arguments: HighNodeUtilization, facts: Facts, usage: Usage | None = None
) -> list[Node]:
    """Return the nodes at or below all thresholds, the emptiest first.

    None of them if there are at most `numberOfNodes`, or if all nodes are: then there is no fuller
    one.
    """
    asked = usage or Usage(facts, arguments.thresholds)
    below, full, row_of = asked.below(arguments.thresholds), asked.fullness(), facts.view.row_of
    found = [node for node in facts.nodes if below[row_of[node.name]]]
    if len(found) <= arguments.number_of_nodes or len(found) == len(facts.nodes):
        return []
    return sorted(found, key=lambda node: (full[row_of[node.name]], node.name))
