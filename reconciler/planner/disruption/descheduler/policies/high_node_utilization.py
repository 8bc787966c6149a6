"""HighNodeUtilization: pods from under-used nodes to fuller ones, so that the first get empty."""

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
    under_used = under_used_nodes(arguments, facts, usage)
    if len(under_used) <= arguments.number_of_nodes or len(under_used) == len(facts.nodes):
        return
    better = usage.looked_at & ~usage.below(arguments.thresholds)
    for node in under_used:
        pods = facts.pods_on.get(node.name, ())
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


def under_used_nodes(
    arguments: HighNodeUtilization, facts: Facts, usage: Usage | None = None
) -> list[Node]:
    """Return the nodes at or below all thresholds, the emptiest first."""
    asked = usage or Usage(facts, arguments.thresholds)
    below, full, row_of = asked.below(arguments.thresholds), asked.fullness(), facts.view.row_of
    found = [node for node in facts.nodes if below[row_of[node.name]]]
    return sorted(found, key=lambda node: (full[row_of[node.name]], node.name))
