"""Nodes that EC2 is about to take back: the interruption queue or the node itself says so.

What the queue says is written onto the node, as the annotation `interruption`; other programs may
write it too: `<action>/<RFC 3339>`. The actions `terminate`, `stop` and `hibernate` are the words
of the instance metadata's `spot/instance-action`; a scheduled change has the time at which it
begins, a rebalance recommendation the time at which it was given. The annotation stays on the node,
so a restart forgets nothing. Source: EC2 user guide, "Spot Instance interruption notices", "EC2
instance rebalance recommendations" and "Scheduled events for your instances".
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.actions import FURTHER_INTERRUPTIONS, INTERRUPTION
from reconciler.model.binding import Binding
from reconciler.model.cluster import Node
from reconciler.model.ids import InstanceId, NodeName
from reconciler.model.interruption_annotation import (
    FURTHER_MAX,
    REBALANCE_RECOMMENDATION,
    SCHEDULED_CHANGE,
    AnnotatedNotice,
    read_annotation,
    read_further,
)
from reconciler.model.notices import SPOT_ACTIONS, Notice
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import rfc3339
from reconciler.planner.clocks import is_skewed

FORCED_AHEAD: Final = timedelta(minutes=10)
"""A notice for a later time is acted upon this long before it."""
HOOK_LASTS: Final = timedelta(minutes=10)
"""How long the pods of a node have whose Auto Scaling group ends it: AWS gives no time."""
_ANNOTATIONS: Final = frozenset({INTERRUPTION, FURTHER_INTERRUPTIONS})


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptionNotice:
    """EC2 takes an instance back, or recommends to replace it."""

    action: str
    deadline: datetime
    """When EC2 begins with it, or when EC2 recommended it; aware."""
    further: tuple["InterruptionNotice", ...] = field(default=(), compare=False)
    """Other notices of its node, by rank: the next one applies when this one is withdrawn."""

    def __str__(self) -> str:
        """Return the notice for people."""
        at = rfc3339(self.deadline)
        if self.action == REBALANCE_RECOMMENDATION:
            return f"EC2 recommended at {at} to leave its instance, which it may soon take back"
        if self.action == SCHEDULED_CHANGE:
            return f"EC2 has scheduled a change of its instance for {at}"
        return f"EC2 will {self.action} its instance at {at}"

    @property
    def rank(self) -> tuple[int, datetime]:
        """Return its rank: of several notices the one with the smallest rank applies."""
        return self.annotated.rank

    def in_force(self, at: datetime) -> bool:
        """Return whether its node is drained for it now, regardless of limits."""
        forced = self.action != REBALANCE_RECOMMENDATION
        return forced and not self.is_over(at) and self.deadline - at <= FORCED_AHEAD

    def is_graceful(self, at: datetime) -> bool:
        """Return whether its node is to be replaced in time, as far as limits allow."""
        later = self.action == SCHEDULED_CHANGE and self.deadline - at > FORCED_AHEAD
        return later or self.action == REBALANCE_RECOMMENDATION

    def is_over(self, at: datetime) -> bool:
        """Return whether its time passed so long ago that it will not come true."""
        return self.annotated.is_over(at)

    @property
    def annotation(self) -> str:
        """Return the value of the node's annotation."""
        return str(self.annotated)

    @property
    def further_annotation(self) -> str:
        """Return the value of the annotation for the further notices; may be empty."""
        return ",".join(interruption_notice.annotation for interruption_notice in self.further)

    @property
    def annotated(self) -> AnnotatedNotice:
        """Return the notice for people, as it is annotated."""
        return AnnotatedNotice(action=self.action, at=self.deadline)


def read_notice(node: Node) -> InterruptionNotice | None:
    """Return the notice on a node; None if there is none, or if it is unreadable."""
    annotated_notice = read_annotation(node.annotations.get(INTERRUPTION, ""))
    return _of_annotated(annotated_notice) if annotated_notice is not None else None


def read_notices(node: Node) -> tuple[InterruptionNotice, ...]:
    """Return all notices on a node: the one that applied last, and the further ones."""
    if not has_notices(node):
        return ()
    first = read_notice(node)
    further = map(_of_annotated, read_further(node.annotations.get(FURTHER_INTERRUPTIONS, "")))
    return (*further,) if first is None else (first, *further)


def has_notices(node: Node) -> bool:
    """Return whether the node has an annotation with a notice, readable or not."""
    return bool(node.annotations) and not node.annotations.keys().isdisjoint(_ANNOTATIONS)


def _of_annotated(found: AnnotatedNotice) -> InterruptionNotice:
    return InterruptionNotice(action=found.action, deadline=found.at)


def queued_interruptions(
    notices: Iterable[Notice], at: datetime, *, rebalance: bool
) -> Mapping[InstanceId, Sequence[InterruptionNotice]]:
    """Return what the interruption queue says about each instance.

    Args:
        notices: The notices of the queue.
        at: The time of the plan; notices that are over by then are left out.
        rebalance: Whether rebalance recommendations count.
    """
    queued: dict[InstanceId, list[InterruptionNotice]] = {}
    notices = tuple(notices)
    withdrawn = withdrawn_changes(notices)
    for each in notices:
        action = {
            "spot-interruption": each.action,
            "scheduled-change": SCHEDULED_CHANGE,
            "rebalance": REBALANCE_RECOMMENDATION if rebalance else "",
        }.get(each.kind, "")
        if not action or each.at is None:
            continue
        if action == SCHEDULED_CHANGE and (each.instance, each.at) in withdrawn:
            continue
        notice = InterruptionNotice(action=action, deadline=each.at)
        if not notice.is_over(at):
            queued.setdefault(each.instance, []).append(notice)
    return queued


def withdrawn_changes(notices: Iterable[Notice]) -> frozenset[tuple[InstanceId, datetime]]:
    """Return the scheduled changes that the queue withdraws, by instance and time."""
    return frozenset(
        (notice.instance, notice.at)
        for notice in notices
        if notice.kind == "change-withdrawn" and notice.at is not None
    )


def carries_withdrawn(node: Node, withdrawn: Collection[tuple[InstanceId, datetime]]) -> bool:
    """Return whether the node's annotations announce a withdrawn change."""
    return any(_is_withdrawn(node, notice, withdrawn) for notice in read_notices(node))


def _is_withdrawn(
    node: Node,
    notice: InterruptionNotice,
    withdrawn: Collection[tuple[InstanceId, datetime]],
) -> bool:
    if notice.action != SCHEDULED_CHANGE or node.instance_id is None:
        return False
    return (node.instance_id, notice.deadline) in withdrawn


def notice_of(
    node: Node,
    queued: Sequence[InterruptionNotice],
    at: datetime,
    withdrawn: Collection[tuple[InstanceId, datetime]] = (),
) -> InterruptionNotice | None:
    """Return the notice that applies to a node, from annotations and queue; None if there is none.

    Args:
        node: The node.
        queued: What the queue says about its instance.
        at: The time of the plan.
        withdrawn: The scheduled changes that the queue withdraws.
    """
    if not queued and not has_notices(node):
        return None
    known = [n for n in read_notices(node) if not _is_withdrawn(node, n, withdrawn)]
    interruption_notices = [
        interruption_notice
        for interruption_notice in (*known, *queued)
        if not interruption_notice.is_over(at)
    ]
    if not interruption_notices:
        return None
    first = min(interruption_notices, key=lambda each: each.rank)
    # Nothing comes after the end of the instance: no further notices are written.
    others = known if first.action in SPOT_ACTIONS else interruption_notices
    return replace(first, further=_further_notices(first, [n for n in others if not n.is_over(at)]))


def _further_notices(
    first: InterruptionNotice, others: Iterable[InterruptionNotice]
) -> tuple[InterruptionNotice, ...]:
    """Return the further notices to keep: other changes, and the first recommendation."""
    ranked = sorted(
        {interruption_notice for interruption_notice in others if interruption_notice != first},
        key=lambda each: each.rank,
    )
    changes = [
        interruption_notice
        for interruption_notice in ranked
        if interruption_notice.action == SCHEDULED_CHANGE
    ]
    recommended = [
        interruption_notice
        for interruption_notice in ranked
        if interruption_notice.action == REBALANCE_RECOMMENDATION
    ]
    if first.action == REBALANCE_RECOMMENDATION:
        recommended = []
    return (*changes[: FURTHER_MAX - 1], *recommended[:1])


def _ended_by_group(snapshot: Snapshot) -> Mapping[InstanceId, InterruptionNotice]:
    """Return a notice for each instance that its group ends and that a hook may still hold."""
    notice = InterruptionNotice(
        action="terminate", deadline=snapshot.at.replace(microsecond=0) + HOOK_LASTS
    )
    cloud = snapshot.cloud
    return (
        {instance.id: notice for instance in cloud.instances if instance.leaving} if cloud else {}
    )


def find_noticed(
    snapshot: Snapshot,
    ours: Collection[NodeName],
    leaving: Collection[NodeName],
    binding: Binding,
    *,
    rebalance: bool,
) -> Mapping[NodeName, InterruptionNotice]:
    """Return our nodes with a notice that is not over, sorted by name.

    Nodes in `leaving` are left out. Empty while nothing proves the cluster, or while the clocks
    differ: no deadline could be kept then.
    """
    interruption_notices: dict[NodeName, InterruptionNotice] = {}
    if not binding.may_remove or is_skewed(snapshot):
        return interruption_notices
    queued = dict(queued_interruptions(snapshot.notices, snapshot.at, rebalance=rebalance))
    for instance, ends in _ended_by_group(snapshot).items():
        queued[instance] = (ends, *queued.get(instance, ()))
    withdrawn = withdrawn_changes(snapshot.notices)
    for node in snapshot.cluster.nodes:
        messages = queued.get(node.instance_id, ()) if node.instance_id is not None else ()
        if (messages or has_notices(node)) and node.name in ours and node.name not in leaving:
            notice = notice_of(node, messages, snapshot.at, withdrawn)
            if notice is not None and (rebalance or notice.action != REBALANCE_RECOMMENDATION):
                interruption_notices[node.name] = notice
    return dict(sorted(interruption_notices.items()))
