"""Nodes that EC2 is about to take back: the interruption queue or the node itself says so.

What the queue tells is written onto the node, as the annotation `interruption`; whoever else
learns of it may write it there too: `<action>/<RFC 3339>`, the words of the instance metadata's
`spot/instance-action`. It stays on the node, so a restart forgets nothing.
Source: EC2 user guide, "Spot Instance interruption notices".
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.actions import INTERRUPTION
from reconciler.model.binding import Binding
from reconciler.model.cluster import Node
from reconciler.model.ids import InstanceId, NodeName
from reconciler.model.interruption_annotation import read_annotation
from reconciler.model.notices import Notice
from reconciler.model.snapshot import Snapshot
from reconciler.planner.clocks import is_skewed
from reconciler.planner.text import rfc3339

FORCED_AHEAD: Final = timedelta(minutes=10)
"""A notice of a later moment waits until this long before it."""
OVER_AFTER: Final = timedelta(minutes=5)
"""So long after its deadline a notice has not come true, or was delivered far too late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptionNotice:
    """EC2 takes an instance back."""

    action: str
    deadline: datetime
    """When EC2 begins with it, aware."""

    def __str__(self) -> str:
        """For people."""
        return f"EC2 will {self.action} its instance at {rfc3339(self.deadline)}"

    def in_force(self, at: datetime) -> bool:
        """Whether its node is emptied for it now."""
        return not self.is_over(at) and self.deadline - at <= FORCED_AHEAD

    def is_over(self, at: datetime) -> bool:
        """Whether its time passed so long ago that it has not come true."""
        return at - self.deadline > OVER_AFTER

    @property
    def annotation(self) -> str:
        """The value of the node's annotation."""
        return f"{self.action}/{rfc3339(self.deadline)}"


def read_notice(node: Node) -> InterruptionNotice | None:
    """Return the notice on a node that EC2 takes it back; None without one that can be read."""
    found = read_annotation(node.annotations.get(INTERRUPTION, ""))
    if found is None or not found.forced:
        return None
    return InterruptionNotice(action=found.action, deadline=found.at)


def told_interruptions(
    notices: Iterable[Notice], at: datetime
) -> Mapping[InstanceId, InterruptionNotice]:
    """Return what the interruption queue tells of each instance: of several notices the earliest.

    Only interruptions that are in force or still to come.
    """
    told: dict[InstanceId, InterruptionNotice] = {}
    for each in notices:
        if each.kind != "spot-interruption" or each.at is None:
            continue
        notice = InterruptionNotice(action=each.action, deadline=each.at)
        known = told.get(each.instance)
        if not notice.is_over(at) and (known is None or notice.deadline < known.deadline):
            told[each.instance] = notice
    return told


def notice_of(
    node: Node, told: Mapping[InstanceId, InterruptionNotice], at: datetime
) -> InterruptionNotice | None:
    """Return the earliest notice for a node that is not over, of annotation and queue."""
    known = read_notice(node)
    message = told.get(node.instance_id) if node.instance_id is not None else None
    found = [each for each in (known, message) if each is not None and not each.is_over(at)]
    return min(found, key=lambda each: each.deadline, default=None)


def find_interrupted(
    snapshot: Snapshot, ours: Collection[NodeName], leaving: Collection[NodeName], binding: Binding
) -> Mapping[NodeName, InterruptionNotice]:
    """Return the nodes of ours with a notice in force, in name order.

    Those whose instance is ending already are left out. There are none while nothing proves the
    cluster, or while the clocks differ: no deadline could be kept then.
    """
    found: dict[NodeName, InterruptionNotice] = {}
    if not binding.may_remove or is_skewed(snapshot):
        return found
    told = told_interruptions(snapshot.notices, snapshot.at)
    for node in snapshot.cluster.nodes:
        announced = INTERRUPTION in node.annotations or node.instance_id in told
        if announced and node.name in ours and node.name not in leaving:
            notice = notice_of(node, told, snapshot.at)
            if notice is not None and notice.in_force(snapshot.at):
                found[node.name] = notice
    return dict(sorted(found.items()))
