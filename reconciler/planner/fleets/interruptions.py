"""Nodes that EC2 is about to take back, as the annotation `interruption` of each node says.

Whoever learns of it writes the annotation: `<action>/<RFC 3339>`, the words of the instance
metadata's `spot/instance-action`. It stays on the node, so a restart forgets nothing.
Source: EC2 user guide, "Spot Instance interruption notices".
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.actions import INTERRUPTION
from reconciler.model.binding import Binding
from reconciler.model.cluster import Node
from reconciler.model.ids import NodeName
from reconciler.model.snapshot import Snapshot
from reconciler.planner.clocks import is_skewed
from reconciler.planner.text import rfc3339

ACTIONS: Final = frozenset({"terminate", "stop", "hibernate"})
"""What EC2 may do to the instance; after each of them the node runs nothing."""
FORCED_AHEAD: Final = timedelta(minutes=10)
"""A notice of a later moment waits until this long before it."""
OVER_AFTER: Final = timedelta(minutes=5)
"""So long after its deadline a notice has not come true, or was delivered far too late."""
LONGEST_NOTICE: Final = 64
"""Characters; an RFC 3339 time has at most 35."""


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
        return -OVER_AFTER <= self.deadline - at <= FORCED_AHEAD


def read_notice(node: Node) -> InterruptionNotice | None:
    """Return the notice on a node; None without one, or where it cannot be read."""
    text = node.annotations.get(INTERRUPTION, "")
    action, _, time = text.partition("/")
    if len(text) > LONGEST_NOTICE or action not in ACTIONS:
        return None
    try:
        deadline = datetime.fromisoformat(time)
    except ValueError:
        return None
    if deadline.tzinfo is None:
        return None
    return InterruptionNotice(action=action, deadline=deadline)


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
    for node in snapshot.cluster.nodes:
        if INTERRUPTION in node.annotations and node.name in ours and node.name not in leaving:
            notice = read_notice(node)
            if notice is not None and notice.in_force(snapshot.at):
                found[node.name] = notice
    return dict(sorted(found.items()))
