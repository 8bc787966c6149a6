"""RemovePodsViolatingNodeTaints: pods that do not tolerate a taint of their node."""

from reconciler.model.actions import DRAINING_TAINT, UNNEEDED_TAINT
from reconciler.model.cluster import Pod, Taint
from reconciler.planner.descheduler_settings import NodeTaints
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)

_OURS = frozenset({DRAINING_TAINT, UNNEEDED_TAINT})
"""They say what this program does with the node, and it moves the pods itself."""


def proposals(arguments: NodeTaints, facts: Facts) -> Proposals:
    """Yield the pods that do not tolerate a NoSchedule taint, on request a PreferNoSchedule one.

    NoExecute taints are the node lifecycle controller's.
    Source: descheduler README, RemovePodsViolatingNodeTaints, read 2026-11.
    """
    for node in facts.nodes:
        taints = [taint for taint in node.taints if _counts(taint, arguments)]
        if not taints:
            continue
        pods = [p for p in facts.pods_on.get(node.name, ()) if arguments.scope.covers(p)]
        for pod in sorted(pods, key=eviction_order):
            taint = _untolerated(pod, taints)
            if taint is not None and not (pod.daemon or pod.mirror or pod.deleting):
                value = f"={taint.value}" if taint.value else ""
                yield Proposal(
                    pod=pod,
                    policy="RemovePodsViolatingNodeTaints",
                    reason=f"it does not tolerate {taint.key}{value}:{taint.effect} of {node.name}",
                    leaves=True,
                )


def _counts(taint: Taint, arguments: NodeTaints) -> bool:
    effects = {"NoSchedule", "PreferNoSchedule" if arguments.prefer_no_schedule else "NoSchedule"}
    if taint.key in _OURS or taint.effect not in effects:
        return False
    names = {taint.key, f"{taint.key}={taint.value}"} if taint.value else {taint.key}
    return not names & arguments.excluded and (
        not arguments.included or bool(names & arguments.included)
    )


def _untolerated(pod: Pod, taints: list[Taint]) -> Taint | None:
    tolerations = pod.spec.tolerations
    return next((t for t in taints if not any(each.tolerates(t) for each in tolerations)), None)
