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
from reconciler.planner.rules import forbidding


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
    """Return the nodes at or below all thresholds that can become empty, the emptiest first.

    None of them if at most `numberOfNodes` are below, or if all nodes are: then there is no fuller
    one.
    """
    asked = usage or Usage(facts, arguments.thresholds)
    below, full, row_of = asked.below(arguments.thresholds), asked.fullness(), facts.view.row_of
    nodes = [node for node in facts.nodes if below[row_of[node.name]]]
    if len(nodes) <= arguments.number_of_nodes or len(nodes) == len(facts.nodes):
        return []
    nodes = [node for node in nodes if _can_become_empty(node, arguments, facts)]
    return sorted(nodes, key=lambda node: (full[row_of[node.name]], node.name))


def _can_become_empty(node: Node, arguments: HighNodeUtilization, facts: Facts) -> bool:
    """Return whether all pods of the node may go now or later.

    Otherwise the node stays: no pod would have been moved for a saving, and kube-scheduler would
    avoid room that is paid for.
    """
    if forbidding(node.annotations):
        return False
    pods = facts.staying(facts.pods_on.get(node.name, ()))
    staying = (
        pod for pod in pods if not (pod.daemon or pod.mirror or pod.deleting or pod.finished)
    )
    return all(arguments.scope.covers(pod) and not facts.stays_for_good(pod) for pod in staying)
