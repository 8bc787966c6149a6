"""HighNodeUtilization: pods from under-used nodes to fuller ones, so that the first get empty."""

import numpy as np

from reconciler.model.cluster import Node
from reconciler.planner.descheduler_settings import HighNodeUtilization
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)
from reconciler.planner.disruption.descheduler.usage import Usage, fullness, is_below, shown


def proposals(arguments: HighNodeUtilization, facts: Facts) -> Proposals:
    """Yield the pods of under-used nodes, the emptiest node first.

    They are expected on nodes above the thresholds only.
    Source: descheduler README, HighNodeUtilization, read 2026-11.
    """
    usage = Usage(facts, arguments.thresholds)
    under_used = under_used_nodes(arguments, facts, usage)
    low = {node.name for node in under_used}
    if len(low) <= arguments.number_of_nodes or len(low) == len(facts.nodes):
        return
    looked_at = {node.name for node in facts.nodes}
    better = np.array(
        [name in looked_at and name not in low for name in facts.view.nodes], dtype=np.bool_
    )
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
    found = [n for n in facts.nodes if is_below(asked.percents(n.name), arguments.thresholds)]
    return sorted(found, key=lambda node: (fullness(asked, node), node.name))
