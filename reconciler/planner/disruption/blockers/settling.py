"""Nodes that received a pod recently: their pods are not moved yet.

A new replica starts where kube-scheduler put it a moment ago, often after this program moved the
one before it. A node that received a pod within `settle_time` is therefore no candidate for a
voluntary move, and for one that only saves money not within `consolidate_after`.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.model.actions import PolicyName
from reconciler.model.cluster import Pod
from reconciler.model.counted import counts
from reconciler.model.text import duration
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.settings import ScaleInSettings


def settled_at(
    pods: Iterable[Pod], policy: PolicyName, settings: ScaleInSettings, at: datetime
) -> datetime | None:
    """Return the moment from which a node's pods may be moved; None when nothing tells their age.

    Args:
        pods: The pods on the node.
        policy: `scale-in`, or `consolidation` for a move that only saves money.
        settings: The scale-in settings of the node's fleet.
        at: The clock.
    """
    latest = last_bound(pods, at)
    if latest is None:
        return None
    saving_only = policy == "consolidation"
    seconds = settings.consolidate_after_seconds if saving_only else settings.settle_seconds
    return latest + timedelta(seconds=seconds)


def last_bound(pods: Iterable[Pod], at: datetime) -> datetime | None:
    """Return when the last of the pods came to its node; None when nothing tells."""
    bound = (bound_at(pod, at) for pod in pods if counts(pod))
    return max((each for each in bound if each is not None), default=None)


def bound_at(pod: Pod, at: datetime) -> datetime | None:
    """Return when the pod came to its node, as far as its times tell; None when they do not.

    The API server dates its creation and when it was bound, which may be much later. Its start is
    dated by the clock of its node: it was not before these, and one in the future tells nothing.

    Args:
        pod: A pod on a node.
        at: The clock.
    """
    times = [pod.created_at, pod.scheduled_at]
    if pod.started_at is not None and pod.started_at <= at:
        times.append(pod.started_at)
    return max((each for each in times if each is not None), default=None)


def settles(left: timedelta, at: datetime) -> Blocker:
    """Return the blocker of a node whose pods may be moved in `left`."""
    detail = f"a pod was placed there a short time ago; {duration(left)} to go"
    return Blocker("settling", detail, at + left)
