"""LowNodeUtilization: proposes pods of over-used nodes while under-used nodes have room."""

from collections.abc import Mapping

from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import ResourceName
from reconciler.planner.descheduler_settings import LowNodeUtilization
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)
from reconciler.planner.disruption.descheduler.usage import Usage, shown
from reconciler.planner.placement.arrays import BoolArray

_WHOLE = 100.0


def proposals(arguments: LowNodeUtilization, facts: Facts) -> Proposals:
    """Yield pods of over-used nodes, the fullest node first, until each is at its target.

    They are expected on nodes that were under-used and that stay within their target.

    Source: descheduler README, LowNodeUtilization, read 2026-11.
    """
    usage = Usage(facts, {*arguments.thresholds, *arguments.target_thresholds})
    low, high = _thresholds(arguments, usage)
    cordoned = [facts.view.row_of[node.name] for node in facts.nodes if node.unschedulable]
    under_used = usage.below(low)
    under_used[cordoned] = False
    if under_used.sum() <= arguments.number_of_nodes:
        return
    full, row_of = usage.fullness(), facts.view.row_of
    over_used = [node for node in facts.nodes if _over_target(usage, node, high)]
    for node in sorted(over_used, key=lambda node: (-full[row_of[node.name]], node.name)):
        yield from _pods_to_move(arguments, facts, node, usage, (under_used, high))


def _pods_to_move(
    arguments: LowNodeUtilization,
    facts: Facts,
    node: Node,
    usage: Usage,
    target: tuple[BoolArray, Mapping[str, float]],
) -> Proposals:
    """Yield pods of one node while it is above its target.

    Evicting a pod that requests nothing of what is above the target would not help.
    """
    under_used, high = target
    evicted = 0
    for pod in sorted(_pods(arguments, facts, node), key=eviction_order):
        percents = usage.percents(node.name)
        over = _over_target(usage, node, high)
        if not over or evicted == arguments.evictions_per_node_max:
            return
        if not any(pod.spec.requests.get(name) for name in over):
            continue
        place = yield Proposal(
            pod=pod,
            policy="LowNodeUtilization",
            reason=f"{node.name} is over-used: {shown(percents)}, at most {shown(high)}",
            better=under_used & ~usage.above(high, pod),
            leaves=True,
            balances=True,
        )
        if place is not None:
            evicted += 1
            usage.move(pod, node.name, place)


def _over_target(usage: Usage, node: Node, high: Mapping[str, float]) -> list[ResourceName]:
    """Return the resources of which a node is above its target.

    Pods that are being deleted are left out.
    """
    percents = usage.percents(node.name)
    return [ResourceName(name) for name, most in high.items() if percents.get(name, 0.0) > most]


def _pods(arguments: LowNodeUtilization, facts: Facts, node: Node) -> list[Pod]:
    """Return the pods of a node that the policy may propose."""
    return [
        pod
        for pod in facts.staying(facts.pods_on.get(node.name, ()))
        if not (pod.daemon or pod.mirror or pod.deleting) and arguments.scope.covers(pod)
    ]


def _thresholds(
    arguments: LowNodeUtilization, usage: Usage
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return the thresholds of under-use and of over-use, in percent by resource.

    They may be given as distances from the mean. A distance of 0 below the mean leaves the resource
    out on both sides, as upstream does.
    """
    if not arguments.deviation:
        return arguments.thresholds, arguments.target_thresholds
    mean = usage.mean()
    below, above = arguments.thresholds, arguments.target_thresholds
    low = {n: max(0.0, mean.get(n, 0.0) - d) for n, d in below.items() if d > 0}
    high = {n: min(_WHOLE, mean.get(n, 0.0) + d) for n, d in above.items() if below.get(n) != 0}
    return FrozenMap(low), FrozenMap(high)
