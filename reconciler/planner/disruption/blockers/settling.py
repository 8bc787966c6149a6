"""Nodes that received a pod recently: their pods are not moved yet.

A new replica starts where kube-scheduler has just put it, often after this program evicted its
predecessor. A node is therefore no candidate for a voluntary move until `settle_time` after it
received a pod, and for a move that only saves money until `consolidate_after`.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.model.actions import PolicyName
from reconciler.model.cluster import Pod
from reconciler.model.counted_pods import counts
from reconciler.model.text import duration
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption_settings import ScaleInSettings


def settled_at(
    pods: Iterable[Pod], policy: PolicyName, settings: ScaleInSettings, at: datetime
) -> datetime | None:
    """Return the time from which a node's pods may be moved; None if their ages are unknown.

    Args:
        pods: The pods on the node.
        policy: `scale-in`, or `consolidation` for a move that only saves money.
        settings: The scale-in settings of the node's fleet.
        at: The time of the plan.
    """
    latest = last_bound(pods, at)
    if latest is None:
        return None
    saving_only = policy == "consolidation"
    seconds = settings.consolidate_after_seconds if saving_only else settings.settle_seconds
    return latest + timedelta(seconds=seconds)


def last_bound(pods: Iterable[Pod], at: datetime) -> datetime | None:
    """Return when the newest of the pods was bound to the node; None if that is not known."""
    bound = (bound_at(pod, at) for pod in pods if counts(pod))
    return max((each for each in bound if each is not None), default=None)


def bound_at(pod: Pod, at: datetime) -> datetime | None:
    """Return when the pod was bound to its node; None if its timestamps do not tell.

    The API server dates the pod's creation and its binding, which may be much later. The start is
    dated by the node's clock: the pod cannot have been bound after it, and a start in the future is
    ignored.

    Args:
        pod: A pod on a node.
        at: The time of the plan.
    """
    times = [pod.created_at, pod.scheduled_at]
    if pod.started_at is not None and pod.started_at <= at:
        times.append(pod.started_at)
    return max((time for time in times if time is not None), default=None)


def settles(left: timedelta, at: datetime) -> Blocker:
    """Return the blocker of a node whose pods may be moved after `left`."""
    detail = f"a pod was placed there a short time ago; {duration(left)} to go"
    return Blocker("settling", detail, at + left)
