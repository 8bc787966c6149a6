"""Expired nodes that pods have kept for longer than their fleet's `terminate_after`.

Since when pods keep a node is written on it, so that a restart does not begin the time again. The
time begins again when the node is emptied, or has no pods. While no pod keeps it and it is not
emptied, the time stands still; since when is written too. Many things may keep it then: a
disruption budget for other hours, pods that came a minute ago, other nodes that are emptied first,
a replacement that is yet to join. If the time began again meanwhile, Jobs that follow each other
would keep a node for good.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.actions import PODS_BLOCK_SINCE, AnnotateNode, DeletePod, EvictPod
from reconciler.model.cluster import Node, Pod
from reconciler.model.counted_pods import counts
from reconciler.model.text import duration, parse_rfc3339, rfc3339
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.drains.actions import annotate, evictions, last_failure
from reconciler.planner.fleets.updates.outdated import outdated_by_age
from reconciler.planner.pod_disruption_budgets import Coverage
from reconciler.planner.rules import comes_back
from reconciler.planner.settings import FleetSettings
from reconciler.planner.view import ClusterView

POLICY: Final = "expiry"


def ends_at(view: ClusterView, node: Node, settings: FleetSettings) -> datetime | None:
    """Return when the node is ended regardless of its pods; None if never.

    Args:
        view: The facts.
        node: The node.
        settings: The settings of its fleet.
    """
    if settings.terminate_after_seconds is None:
        return None
    since = noted_since(view, node)
    if since is None or not _is_expired(view, node, settings, view.at):
        return None
    return since + timedelta(seconds=settings.terminate_after_seconds)


def noted_since(view: ClusterView, node: Node) -> datetime | None:
    """Return since when pods keep the node, as noted on it; a time in the future counts as now.

    Time during which the clock stood still is subtracted, as if the pods had begun later.
    """
    since, stopped = _noted(view, node)
    return since if since is None or stopped is None else since + (view.at - stopped)


def _noted(view: ClusterView, node: Node) -> tuple[datetime | None, datetime | None]:
    """Return since when pods keep it, and since when that time stands still; None for neither."""
    first, _, second = node.annotations.get(PODS_BLOCK_SINCE, "").partition("/")
    since, stopped = parse_rfc3339(first), parse_rfc3339(second)
    if since is None or stopped is None:
        return (None if since is None else min(since, view.at)), None
    stopped = min(stopped, view.at)
    return min(since, stopped), stopped


def is_overdue(view: ClusterView, node: Node, settings: FleetSettings) -> bool:
    """Return whether `terminate_after` of the expired node has passed."""
    end = ends_at(view, node, settings)
    return end is not None and end <= view.at


def update_overdue_timer(
    builder: PlanBuilder,
    node: Node,
    settings: FleetSettings,
    *,
    blocked: bool,
    empty: bool = False,
) -> None:
    """Note since when pods keep an expired node, or that they do not keep it now.

    Args:
        builder: The plan.
        node: A node that is not being drained.
        settings: The settings of its fleet.
        blocked: Whether its pods keep it now, or `failed_since_expiry`.
        empty: Whether it has no pods: then its time begins again. Otherwise it stands still while
            they do not keep it.
    """
    view, text = builder.view, node.annotations.get(PODS_BLOCK_SINCE)
    counts = settings.terminate_after_seconds is not None
    counts = counts and _is_expired(view, node, settings, view.at)
    since, stopped = _noted(view, node)
    value, because = None, "no pod keeps it now, or it has no time limit"
    if counts and blocked:
        value = rfc3339(noted_since(view, node) or view.at)
        because = "pods keep it although it has expired"
    elif counts and not empty and since is not None:
        value = f"{rfc3339(since)}/{rfc3339(stopped or view.at)}"
        because = "no pod keeps it now: its time stands still until it is emptied"
    if value != text:
        builder.change_nodes(annotate(node, PODS_BLOCK_SINCE, value, POLICY, because))


def reset_overdue_timer(node: Node) -> list[AnnotateNode]:
    """Return the action that removes the annotation `pods-block-since`; none if it is not set."""
    if PODS_BLOCK_SINCE not in node.annotations:
        return []
    return [annotate(node, PODS_BLOCK_SINCE, None, POLICY, "no pod keeps it now: it is emptied")]


def failed_since_expiry(view: ClusterView, node: Node, settings: FleetSettings) -> bool:
    """Return whether the node's last drain failed after the node had expired.

    Such a drain may not be tried again before the next window of a budget, or the next day: until
    then nothing shows that the node could be emptied. A drain that failed earlier, for another
    reason, says nothing about what keeps the expired node.

    Args:
        view: The facts.
        node: A node that is not being drained.
        settings: The settings of its fleet.
    """
    failure = last_failure(view, node, since=noted_since(view, node))
    return failure is not None and _is_expired(view, node, settings, failure.latest)


def until_end(view: ClusterView, end: datetime | None) -> str:
    """Return `; it is ended anyway in …` for an end in the future; else an empty text.

    It is appended to the reason that keeps an expired node.
    """
    if end is None or end <= view.at:
        return ""
    return f"; it is ended anyway in {duration(end - view.at)} (terminate_after)"


def evictions_and_deletions(
    coverage: Coverage, node: Node, pods: Sequence[Pod], now: Sequence[Pod], because: str
) -> list[EvictPod | DeletePod]:
    """Return evictions for the pods that budgets allow and deletions for the others.

    Each pod has its own grace period. One that was deleted with a longer one is deleted once more.

    Args:
        coverage: Which budgets cover a pod: the Eviction API refuses pods that two budgets cover.
        node: The node.
        pods: All pods that have to leave it.
        now: Those that every budget allows to evict now.
        because: Why.
    """
    known = [pod for pod in now if coverage.readable(pod) and not pod.deleting]
    allowed = [pod for pod in known if len(coverage.of(pod)) <= 1]
    grace = max((pod.spec.termination_grace_seconds for pod in allowed), default=0)
    evicted = {pod.key for pod in allowed}
    deleted = [
        DeletePod(
            pod=pod.key,
            node=node.name,
            grace_seconds=int(pod.spec.termination_grace_seconds),
            policy=POLICY,
            because=f"{because}; terminate_after has passed",
        )
        for pod in sorted(pods, key=lambda pod: pod.key)
        if pod.key not in evicted
    ]
    return [*evictions(node, allowed, grace, POLICY, because), *deleted]


def needs_a_place(pod: Pod) -> bool:
    """Return whether a pod of an overdue node is made again when it leaves, and is not yet."""
    return pod.owner is not None and not pod.deleting


def returned_pods(pods: Sequence[Pod], began: datetime | None) -> list[Pod]:
    """Return the pods that came to an overdue node after its drain began, and would come again.

    They tolerate the taint of the drain, and nothing keeps kube-scheduler from binding them to the
    emptiest node. They are not deleted again and again: they end with the instance.

    Args:
        pods: All pods on the node.
        began: When its drain began; None if that is not known.
    """
    return [
        pod
        for pod in pods
        if began is not None
        and pod.created_at is not None
        and pod.created_at >= began
        and not pod.deleting
        and counts(pod)
        and comes_back(pod.spec.tolerations)
    ]


def _is_expired(view: ClusterView, node: Node, settings: FleetSettings, at: datetime) -> bool:
    """Return whether the node is older than `expire_after` at that time."""
    instance = view.inventory.instance_of_node.get(node.name)
    expired = outdated_by_age(node, instance, settings, at) is not None
    return expired and not settings.departing
