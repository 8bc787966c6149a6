"""RemovePodsHavingTooManyRestarts: proposes pods whose containers keep restarting."""

from collections.abc import Sequence
from operator import attrgetter

from reconciler.model.cluster import Pod
from reconciler.planner.descheduler_settings import TooManyRestarts
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)


def proposals(arguments: TooManyRestarts, facts: Facts) -> Proposals:
    """Yield the pods with at least `podRestartThreshold` restarts, those with the most first.

    Source: descheduler README, RemovePodsHavingTooManyRestarts, read 2026-11.
    """
    found = [
        (_restarts(pod, arguments), pod)
        for replicas in facts.replicas
        if arguments.scope.covers(replicas[0]) and _any_restarted(replicas)
        for pod in replicas
        if (pod.restarts or pod.containers) and _is_in_state(pod, arguments)
    ]
    found = [each for each in found if each[0] >= arguments.threshold]
    for restarts, pod in sorted(found, key=lambda each: (-each[0], eviction_order(each[1]))):
        yield Proposal(
            pod=pod,
            policy="RemovePodsHavingTooManyRestarts",
            reason=f"its containers restarted {restarts} times, the limit is {arguments.threshold}",
        )


def _any_restarted(pods: Sequence[Pod]) -> bool:
    return any(map(attrgetter("restarts"), pods)) or any(map(attrgetter("containers"), pods))


def _restarts(pod: Pod, arguments: TooManyRestarts) -> int:
    init = sum(container.restarts for container in pod.containers if container.kind == "init")
    return pod.restarts + (init if arguments.init_containers else 0)


def _is_in_state(pod: Pod, arguments: TooManyRestarts) -> bool:
    """Return whether its phase, or why a container waits, is in `states`; True without any."""
    if not arguments.states or pod.phase in arguments.states:
        return True
    kinds = {"container", "init"} if arguments.init_containers else {"container"}
    return any(e.kind in kinds and e.waiting in arguments.states for e in pod.containers)
