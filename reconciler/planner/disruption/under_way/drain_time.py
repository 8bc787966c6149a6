"""How long a drain may take, and what is noted of its time on the node."""

from datetime import timedelta

from reconciler.model.actions import DRAIN_PROGRESS, DRAIN_STARTED, AnnotateNode
from reconciler.model.cluster import Node
from reconciler.model.text import duration, rfc3339
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.drains.actions import annotate
from reconciler.planner.disruption.drains.rounds import timed_out
from reconciler.planner.disruption.node_disruption import Disruption
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.view import ClusterView


def too_long(
    view: ClusterView, drain: Disruption, settings: ScaleInSettings, to_evict: int, ending: int
) -> Blocker | None:
    """Return a blocker if the drain has taken too long; None while there is time left."""
    started, progress = drain.started or view.at, drain.progress
    if progress is not None:
        return timed_out(progress.after(view.at, to_evict, ending), started, view.at, settings)
    limit_seconds = settings.pod_eviction_timeout_seconds
    if not to_evict:
        limit_seconds += settings.graceful_termination_max_seconds
    spent = view.at - started
    if spent <= timedelta(seconds=limit_seconds):
        return None
    return Blocker("drain-timeout", f"not empty {duration(spent)} after its drain began")


def time_notes(
    view: ClusterView, node: Node, drain: Disruption, left: tuple[int, int]
) -> list[AnnotateNode]:
    """Return the drain's annotations that change: its progress, or a start that is unreadable.

    An unreadable or missing start is written again as now, so that the drain can time out.
    """
    notes: list[tuple[str, str, str]] = []
    text = node.annotations.get(DRAIN_STARTED, "")
    started = drain.started
    if started is None or (started >= view.at and text != rfc3339(view.at)):
        notes.append((DRAIN_STARTED, rfc3339(view.at), "the start of its drain cannot be read"))
    if drain.progress is not None:
        now = str(drain.progress.after(view.at, *left))
        if now != node.annotations[DRAIN_PROGRESS]:
            notes.append((DRAIN_PROGRESS, now, "its drain in rounds has made progress"))
    return [annotate(node, key, value, drain.policy, because) for key, value, because in notes]
