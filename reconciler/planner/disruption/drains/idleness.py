"""Which pods keep a node in use, and since when there are none."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.model.actions import UNNEEDED_SINCE
from reconciler.model.cluster import Node, Pod
from reconciler.model.counted import counts
from reconciler.model.text import parse_rfc3339
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.view import ClusterView


def counted(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that keep their node."""
    return [pod for pod in pods if counts(pod)]


def in_use(pods: Iterable[Pod]) -> bool:
    """Return whether any of these pods keeps its node."""
    return any(map(counts, pods))


def is_empty(builder: PlanBuilder, node: Node) -> bool:
    """Return whether no counted pod runs there and none is reserved to come in this plan."""
    view = builder.view
    if view.row_of[node.name] in builder.used_rows:
        return False
    return not in_use(view.pods_on.get(node.name, ()))


def holds_only_headroom(builder: PlanBuilder, node: Node) -> bool:
    """Return whether no counted pod runs there, and room of it is kept free for pods to come."""
    if builder.view.row_of[node.name] not in builder.kept_free:
        return False
    return not in_use(builder.view.pods_on.get(node.name, ()))


def unneeded_since(view: ClusterView, node: Node) -> datetime | None:
    """Return the latest of the annotation and the Ready transition, never later than now.

    None without an annotation that can be read, or with one of the future, written by a clock
    that was ahead: the timer starts now, and is written again.
    """
    noted = parse_rfc3339(node.annotations.get(UNNEEDED_SINCE, ""))
    if noted is None or noted > view.at:
        return None
    return min(max(noted, node.ready_changed_at or noted), view.at)


def idle_since(view: ClusterView, node: Node) -> datetime | None:
    """Since when the node has been empty; None when nothing tells and the timer starts now.

    The latest of the annotation (or, without it, the end of its last finished pod) and the Ready
    transition. A transition in the future counts as now; so do the others, and the timer is noted.
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
    """Return how long the node has been empty; None when the timer starts now."""
    since = idle_since(view, node)
    return None if since is None else view.at - since
