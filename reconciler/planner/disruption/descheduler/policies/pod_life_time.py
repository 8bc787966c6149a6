"""PodLifeTime: proposes pods older than `maxPodLifeTimeSeconds`, the oldest first."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Final

from reconciler.model.cluster import Pod
from reconciler.model.text import duration
from reconciler.planner.descheduler_settings import PodLifeTime
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    age_seconds,
    eviction_order,
)

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def proposals(arguments: PodLifeTime, facts: Facts) -> Proposals:
    """Yield the pods older than `maxPodLifeTimeSeconds`; if `states` are named, only those in one.

    Pods that have ended are proposed only if a state names how they ended.

    Source: descheduler README, PodLifeTime, read 2026-11.
    """
    before = facts.at - timedelta(seconds=arguments.seconds_max)
    old = [
        pod
        for replicas in facts.replicas
        if arguments.scope.covers(replicas[0]) and _first_made(replicas) < before
        for pod in replicas
        if pod.created_at is not None and pod.created_at < before and _is_in_state(pod, arguments)
    ]
    if arguments.states:
        old += _ended(arguments, facts, before)
    for pod in sorted(old, key=lambda pod: (-age_seconds(pod, facts.at), eviction_order(pod))):
        age = duration(timedelta(seconds=age_seconds(pod, facts.at)))
        most = duration(timedelta(seconds=arguments.seconds_max))
        yield Proposal(pod=pod, policy="PodLifeTime", reason=f"it is {age} old, at most {most}")


def _ended(arguments: PodLifeTime, facts: Facts, before: datetime) -> Iterator[Pod]:
    """Yield the pods that have ended, are older than that and are in one of the states."""
    for node in facts.nodes:
        for pod in facts.view.finished_on.get(node.name, ()):
            old = pod.created_at is not None and pod.created_at < before
            asked_for = arguments.scope.covers(pod) and _is_in_state(pod, arguments)
            if old and asked_for and not pod.deleting:
                yield pod


def _first_made(pods: Sequence[Pod]) -> datetime:
    """Return when the oldest of the pods was created; `datetime.min` if unknown for one of them."""
    made = list(map(attrgetter("created_at"), pods))
    return _LONG_AGO if None in made else min(made)


def _is_in_state(pod: Pod, arguments: PodLifeTime) -> bool:
    """Return whether the pod is in one of the states.

    A state is a phase, a reason, or why a container waits or was terminated.
    """
    if not arguments.states or arguments.states & {pod.phase, pod.reason}:
        return True
    kinds = {"container"}
    kinds |= {"init"} if arguments.init_containers else set()
    kinds |= {"ephemeral"} if arguments.ephemeral_containers else set()
    return any(
        container.kind in kinds and arguments.states & {container.waiting, container.terminated}
        for container in pod.containers
    )
