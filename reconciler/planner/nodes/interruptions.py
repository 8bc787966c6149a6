"""Nodes that EC2 is about to take back: the interruption queue or the node itself says so.

What the queue tells is written onto the node, as the annotation `interruption`; whoever else
learns of it may write it there too: `<action>/<RFC 3339>`. The actions `terminate`, `stop` and
`hibernate` are the words of the instance metadata's `spot/instance-action`; a scheduled change has
the time at which it begins, a rebalance recommendation the time at which it was given. The
annotation stays on the node, so a restart forgets nothing.
Source: EC2 user guide, "Spot Instance interruption notices", "EC2 instance rebalance
recommendations" and "Scheduled events for your instances".
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.actions import INTERRUPTION
from reconciler.model.binding import Binding
from reconciler.model.cluster import Node
from reconciler.model.ids import InstanceId, NodeName
from reconciler.model.interruption_annotation import (
    REBALANCE_RECOMMENDATION,
    SCHEDULED_CHANGE,
    AnnotatedNotice,
    read_annotation,
)
from reconciler.model.notices import Notice
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import rfc3339
from reconciler.planner.clocks import is_skewed

FORCED_AHEAD: Final = timedelta(minutes=10)
"""A notice of a later moment waits until this long before it."""
HOOK_LASTS: Final = timedelta(minutes=10)
"""How long the pods of a node have that its Auto Scaling group ends: AWS names no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptionNotice:
    """EC2 takes an instance back, or recommends to leave it."""

    action: str
    deadline: datetime
    """When EC2 begins with it, or when it recommended it; aware."""

    def __str__(self) -> str:
        """For people."""
        at = rfc3339(self.deadline)
        if self.action == REBALANCE_RECOMMENDATION:
            return f"EC2 recommended at {at} to leave its instance, which it may soon take back"
        if self.action == SCHEDULED_CHANGE:
            return f"EC2 has scheduled a change of its instance for {at}"
        return f"EC2 will {self.action} its instance at {at}"

    @property
    def rank(self) -> tuple[int, datetime]:
        """Return its rank: of several notices the one with the smallest rank holds."""
        return self.annotated.rank

    def in_force(self, at: datetime) -> bool:
        """Return whether its node is emptied for it now, whatever limits say."""
        forced = self.action != REBALANCE_RECOMMENDATION
        return forced and not self.is_over(at) and self.deadline - at <= FORCED_AHEAD

    def is_graceful(self, at: datetime) -> bool:
        """Return whether its node is to be replaced in time, as far as limits allow."""
        later = self.action == SCHEDULED_CHANGE and self.deadline - at > FORCED_AHEAD
        return later or self.action == REBALANCE_RECOMMENDATION

    def is_over(self, at: datetime) -> bool:
        """Return whether its time passed so long ago that it has not come true."""
        return self.annotated.is_over(at)

    @property
    def annotation(self) -> str:
        """Return the value of the node's annotation."""
        return str(self.annotated)

    @property
    def annotated(self) -> AnnotatedNotice:
        """Return what the node's annotation says."""
        return AnnotatedNotice(action=self.action, at=self.deadline)


def read_notice(node: Node) -> InterruptionNotice | None:
    """Return the notice on a node; None without one, or where it cannot be read."""
    found = read_annotation(node.annotations.get(INTERRUPTION, ""))
    return InterruptionNotice(action=found.action, deadline=found.at) if found is not None else None


def told_interruptions(
    notices: Iterable[Notice], at: datetime, *, rebalance: bool
) -> Mapping[InstanceId, InterruptionNotice]:
    """Return what the interruption queue tells of each instance: the notice that outranks others.

    Args:
        notices: Of the queue.
        at: The clock; what is over by then is left out.
        rebalance: Whether rebalance recommendations count.
    """
    told: dict[InstanceId, InterruptionNotice] = {}
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
        known = told.get(each.instance)
        if not notice.is_over(at) and (known is None or notice.rank < known.rank):
            told[each.instance] = notice
    return told


def withdrawn_changes(notices: Iterable[Notice]) -> frozenset[tuple[InstanceId, datetime]]:
    """Return the scheduled changes that the queue takes back: of which instance, and for when."""
    return frozenset(
        (each.instance, each.at)
        for each in notices
        if each.kind == "change-withdrawn" and each.at is not None
    )


def carries_withdrawn(node: Node, withdrawn: Collection[tuple[InstanceId, datetime]]) -> bool:
    """Return whether the node's annotation announces a change that is taken back."""
    known = read_notice(node)
    if known is None or known.action != SCHEDULED_CHANGE or node.instance_id is None:
        return False
    return (node.instance_id, known.deadline) in withdrawn


def notice_of(
    node: Node,
    told: Mapping[InstanceId, InterruptionNotice],
    at: datetime,
    withdrawn: Collection[tuple[InstanceId, datetime]] = (),
) -> InterruptionNotice | None:
    """Return the notice that holds for a node, of annotation and queue; None without one.

    Args:
        node: The node.
        told: What the queue tells.
        at: The clock.
        withdrawn: The scheduled changes that the queue takes back.
    """
    known = None if carries_withdrawn(node, withdrawn) else read_notice(node)
    message = told.get(node.instance_id) if node.instance_id is not None else None
    found = [each for each in (known, message) if each is not None and not each.is_over(at)]
    return min(found, key=lambda each: each.rank, default=None)


def _ended_by_group(snapshot: Snapshot) -> Mapping[InstanceId, InterruptionNotice]:
    """Return a notice for each instance that its group ends, and that a hook may hold yet."""
    notice = InterruptionNotice(
        action="terminate", deadline=snapshot.at.replace(microsecond=0) + HOOK_LASTS
    )
    cloud = snapshot.cloud
    return {each.id: notice for each in cloud.instances if each.leaving} if cloud else {}


def find_noticed(
    snapshot: Snapshot,
    ours: Collection[NodeName],
    leaving: Collection[NodeName],
    binding: Binding,
    *,
    rebalance: bool,
) -> Mapping[NodeName, InterruptionNotice]:
    """Return the nodes of ours with a notice that is not over, in name order.

    Those that are in `leaving` are left out. There are none while nothing proves the
    cluster, or while the clocks differ: no deadline could be kept then.
    """
    found: dict[NodeName, InterruptionNotice] = {}
    if not binding.may_remove or is_skewed(snapshot):
        return found
    told = {
        **_ended_by_group(snapshot),
        **told_interruptions(snapshot.notices, snapshot.at, rebalance=rebalance),
    }
    withdrawn = withdrawn_changes(snapshot.notices)
    for node in snapshot.cluster.nodes:
        announced = INTERRUPTION in node.annotations or node.instance_id in told
        if announced and node.name in ours and node.name not in leaving:
            notice = notice_of(node, told, snapshot.at, withdrawn)
            if notice is not None and (rebalance or notice.action != REBALANCE_RECOMMENDATION):
                found[node.name] = notice
    return dict(sorted(found.items()))
