"""What the node watch changes on its node, from metadata and the node's current state; pure.

As in the planner, the notice that outranks the others applies; of two with the same rank, the
earlier one. So the capacity loop, which writes the interruption queue's notices, and the node watch
agree in whatever order they write. Only what the node watch wrote itself is withdrawn.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from reconciler.model.actions import DRAIN_STARTED, DRAINING_TAINT, INTERRUPTION
from reconciler.model.interruption_annotation import (
    WRITTEN_BY_NODE_WATCH,
    AnnotatedNotice,
    read_annotation,
)
from reconciler.node_watch.announcements import Announcements

GROUP_NOTICE: Final = timedelta(minutes=2)
"""How long the node of an Auto Scaling group gets, whose end has no time: as long as spot nodes."""
TAINT: Final[Mapping[str, str]] = {
    "key": DRAINING_TAINT,
    "value": "interruption",
    "effect": "NoSchedule",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNode:
    """The relevant parts of the program's own node."""

    resource_version: str
    provider_id: str
    """Empty until a cloud provider has set it."""
    annotations: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    """As the API server has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """What is to be written to the node."""

    annotations: Mapping[str, str | None]
    """None removes one."""
    taints: tuple[Mapping[str, Any], ...] | None = None
    """All taints of the node; None leaves them unchanged."""


def decide(announcements: Announcements, node: OwnNode, now: datetime) -> NodeChange | None:
    """Return what to write to the node; None when nothing must change."""
    present_text = node.annotations.get(INTERRUPTION)
    written_text = node.annotations.get(WRITTEN_BY_NODE_WATCH)
    notices = _notices(announcements, written_text, now)
    own = written_text is not None and present_text in {None, written_text}
    wanted = _wanted(announcements, notices, now)
    if wanted is None:
        if announcements.problems or written_text is None:
            return None
        announced = read_annotation(written_text) in notices
        return _take_back(node, own=own, announced=announced)
    present = read_annotation(present_text or "")
    withdrawn = own and not announcements.problems and present not in notices
    outranks = present is not None and not present.is_over(now) and present.rank <= wanted.rank
    if outranks and not withdrawn:
        return None
    if present_text is None and written_text == str(wanted):
        # Somebody removed it, such as the capacity loop: it is not written again.
        taints = _untainted(node)
        return None if taints is None else NodeChange(annotations={}, taints=taints)
    taints = _tainted(node) if wanted.forced else _untainted(node) if withdrawn else None
    texts = {INTERRUPTION: str(wanted), WRITTEN_BY_NODE_WATCH: str(wanted)}
    return NodeChange(annotations=texts, taints=taints)


def _notices(
    announcements: Announcements, written_text: str | None, now: datetime
) -> frozenset[AnnotatedNotice]:
    """Return the announced notices; an end by the group keeps the time that it got first."""
    if not announcements.group_terminates:
        return announcements.notices
    written = read_annotation(written_text or "")
    if written is not None and written.action == "terminate":
        return announcements.notices | {written}
    at = (now + GROUP_NOTICE).replace(microsecond=0)
    return announcements.notices | {AnnotatedNotice(action="terminate", at=at)}


def _wanted(
    announcements: Announcements, notices: Iterable[AnnotatedNotice], now: datetime
) -> AnnotatedNotice | None:
    """Return the notice that the node is to carry; None if it is to carry none of these."""
    current = (notice for notice in notices if not notice.is_over(now))
    first = min(current, key=lambda each: (*each.rank, each.action), default=None)
    if announcements.group_terminates and first is not None and not first.forced:
        return None  # the group's end is over and outranks it; its mark must stay, or it restarts
    return first


def _take_back(node: OwnNode, *, own: bool, announced: bool) -> NodeChange | None:
    """Return the removal of what was written; another writer's notice and its taint stay.

    Args:
        node: The current node.
        own: Whether the notice on it, if any, is the node watch's.
        announced: Whether metadata still announces what was written, which did not come true. The
            mark then stays, so that it is not written again.
    """
    gone = [INTERRUPTION] if own and INTERRUPTION in node.annotations else []
    marks = [] if announced else [WRITTEN_BY_NODE_WATCH]
    taints = _untainted(node) if own else None
    if not gone and not marks and taints is None:
        return None
    return NodeChange(annotations=dict.fromkeys([*gone, *marks]), taints=taints)


def _tainted(node: OwnNode) -> tuple[Mapping[str, Any], ...] | None:
    """Return the taints with ours added; None if the node is being drained already."""
    if any(taint.get("key") == DRAINING_TAINT for taint in node.taints):
        return None
    return (*node.taints, TAINT)


def _untainted(node: OwnNode) -> tuple[Mapping[str, Any], ...] | None:
    """Return the taints without ours; None where it is missing, or the drain has begun.

    The capacity loop also ends a drain that it began, when the annotation is gone.
    """
    if DRAIN_STARTED in node.annotations:
        return None
    kept = tuple(taint for taint in node.taints if not _is_ours(taint))
    return None if len(kept) == len(node.taints) else kept


def _is_ours(taint: Mapping[str, Any]) -> bool:
    return all(taint.get(key) == text for key, text in TAINT.items())
