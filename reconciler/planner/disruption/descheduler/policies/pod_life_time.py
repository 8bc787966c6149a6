"""PodLifeTime: pods that are older than they should get, the oldest first."""

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
    """Yield the pods older than `maxPodLifeTimeSeconds`, in one of the states where any is named.

    Pods that have ended are among them only where a state names how they did.
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
    """Yield the pods that have ended, were made before that time and are in a state asked for."""
    for node in facts.nodes:
        for pod in facts.view.finished_on.get(node.name, ()):
            old = pod.created_at is not None and pod.created_at < before
            asked_for = arguments.scope.covers(pod) and _is_in_state(pod, arguments)
            if old and asked_for and not pod.deleting:
                yield pod


def _first_made(pods: Sequence[Pod]) -> datetime:
    """Return when the oldest of the pods was made; long ago where that is not known of one."""
    made = list(map(attrgetter("created_at"), pods))
    return _LONG_AGO if None in made else min(made)


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
