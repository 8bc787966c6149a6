"""RemoveFailedPods: proposes failed pods that nothing has removed."""

from reconciler.model.cluster import Pod
from reconciler.planner.descheduler_settings import FailedPods
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    age_seconds,
    eviction_order,
)


def proposals(arguments: FailedPods, facts: Facts) -> Proposals:
    """Yield the failed pods with the reasons, exit codes, owners and age that are asked for.

    Source: descheduler README, RemoveFailedPods, read 2026-11.
    """
    pods = [
        pod
        for node in facts.nodes
        for pod in facts.view.finished_on.get(node.name, ())
        if pod.phase == "Failed" and not pod.deleting and arguments.scope.covers(pod)
    ]
    for pod in sorted(pods, key=eviction_order):
        if _is_selected(pod, arguments, facts):
            why = f" ({pod.reason})" if pod.reason else ""
            yield Proposal(pod=pod, policy="RemoveFailedPods", reason=f"it has failed{why}")


def _is_selected(pod: Pod, arguments: FailedPods, facts: Facts) -> bool:
    if age_seconds(pod, facts.at) < arguments.seconds_min:
        return False
    if pod.owner is not None and pod.owner.kind in arguments.exclude_owner_kinds:
        return False
    kinds = {"container", "init"} if arguments.init_containers else {"container"}
    containers = [container for container in pod.containers if container.kind in kinds]
    if arguments.reasons:
        reasons = {pod.reason}.union(*({e.waiting, e.terminated} for e in containers))
        if not arguments.reasons & reasons:
            return False
    codes = {container.exit_code for container in containers}
    return not arguments.exit_codes or bool(arguments.exit_codes & codes)
