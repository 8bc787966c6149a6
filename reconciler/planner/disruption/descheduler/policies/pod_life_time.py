"""PodLifeTime: pods that are older than they should get, the oldest first."""

from datetime import timedelta

from reconciler.model.cluster import Pod
from reconciler.planner.descheduler_settings import PodLifeTime
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    age_seconds,
    eviction_order,
)
from reconciler.planner.text import duration


def proposals(arguments: PodLifeTime, facts: Facts) -> Proposals:
    """Yield the pods older than `maxPodLifeTimeSeconds`, in one of the states where any is named.

    Source: descheduler README, PodLifeTime, read 2026-11.
    """
    before = facts.at - timedelta(seconds=arguments.seconds_max)
    old = [
        pod
        for replicas in facts.replicas
        if arguments.scope.covers(replicas[0])
        for pod in replicas
        if pod.created_at is not None and pod.created_at < before and _is_in_state(pod, arguments)
    ]
    for pod in sorted(old, key=lambda pod: (-age_seconds(pod, facts.at), eviction_order(pod))):
        age = duration(timedelta(seconds=age_seconds(pod, facts.at)))
        most = duration(timedelta(seconds=arguments.seconds_max))
        yield Proposal(pod=pod, policy="PodLifeTime", reason=f"it is {age} old, at most {most}")


def _is_in_state(pod: Pod, arguments: PodLifeTime) -> bool:
    """Whether its phase, its reason, or why a container waits or ended is among the states."""
    if not arguments.states or arguments.states & {pod.phase, pod.reason}:
        return True
    kinds = {"container"}
    kinds |= {"init"} if arguments.init_containers else set()
    kinds |= {"ephemeral"} if arguments.ephemeral_containers else set()
    return any(
        each.kind in kinds and arguments.states & {each.waiting, each.terminated}
        for each in pod.containers
    )
