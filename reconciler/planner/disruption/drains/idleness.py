"""Which pods keep a node in use, and since when a node has had none of them."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.model.actions import UNNEEDED_SINCE
from reconciler.model.cluster import Node, Pod
from reconciler.model.counted_pods import counts
from reconciler.model.text import parse_rfc3339
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.view import ClusterView


def counted(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that count, that is, that keep their node in use."""
    return [pod for pod in pods if counts(pod)]


def in_use(pods: Iterable[Pod]) -> bool:
    """Return whether any of the pods counts."""
    return any(map(counts, pods))


def is_empty(builder: PlanBuilder, node: Node) -> bool:
    """Return whether the node has no counted pods and this plan reserves it for none."""
    view = builder.view
    return node.name not in view.nodes_in_use and view.row_of[node.name] not in builder.used_rows


def holds_only_headroom(builder: PlanBuilder, node: Node) -> bool:
    """Return whether the node has no counted pods, and some of its room is kept as headroom."""
    if builder.view.row_of[node.name] not in builder.kept_free:
        return False
    return node.name not in builder.view.nodes_in_use


def unneeded_since(view: ClusterView, node: Node) -> datetime | None:
    """Return since when the node has been unneeded; None if its timer has to start now.

    That is the later one of the annotation and the Ready transition, but never later than now. An
    annotation that is unreadable or in the future (written by a clock that was ahead) starts the
    timer again.
    """
    noted = parse_rfc3339(node.annotations.get(UNNEEDED_SINCE, ""))
    if noted is None or noted > view.at:
        return None
    return min(max(noted, node.ready_changed_at or noted), view.at)


def idle_since(view: ClusterView, node: Node) -> datetime | None:
    """Return since when the node has been empty; None if its timer has to start now.

    That is the later one of the annotation (or, without it, the end of the last finished pod) and
    the Ready transition. Times in the future count as now, and the timer is noted.
    """
    noted = parse_rfc3339(node.annotations.get(UNNEEDED_SINCE, ""))
    if noted is None:
        ends = [p.finished_at for p in view.finished_on.get(node.name, ()) if p.finished_at]
        noted = max(ends, default=None)
    if noted is None or noted > view.at:
        return None
    if node.ready_changed_at is not None:
        noted = max(noted, node.ready_changed_at)
    return min(noted, view.at)


def idle_for(view: ClusterView, node: Node) -> timedelta | None:
    """Return how long the node has been empty; None if its timer has to start now."""
    since = idle_since(view, node)
    return None if since is None else view.at - since
