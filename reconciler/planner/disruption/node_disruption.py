"""What is happening to one node, decoded from the node: the state machine of a disruption.

    requested -> replacement-launching -> draining -> empty -> terminated -> (the node is gone)
    draining -> cancelled, with a rest before it is tried again

Everything is written on the Node (taints and annotations) or reported by EC2, so that any replica
can go on with a disruption. Nothing is remembered beside it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from reconciler.model.actions import (
    DRAINING_TAINT,
    REPLACEMENT_ASKED,
    REPLACEMENT_SET,
    ROLLING_UPDATE,
    SPOT_RETURN,
    PolicyName,
)
from reconciler.model.cluster import Node
from reconciler.model.text import counted_noun
from reconciler.planner.disruption.drains.actions import drain_started, last_failure, rests_until
from reconciler.planner.disruption.drains.attempts import read_attempts
from reconciler.planner.disruption.drains.rounds import DrainProgress, drain_progress
from reconciler.planner.nodes.drain_taints import drain_policy, is_draining_voluntarily
from reconciler.planner.view import ClusterView

Stage = Literal[
    "requested", "replacement-launching", "draining", "empty", "terminated", "cancelled"
]
DisruptionClass = Literal["forced", "graceful"]

_REQUESTED: tuple[tuple[str, PolicyName], ...] = (
    (ROLLING_UPDATE, "rolling-update"),
    (SPOT_RETURN, "spot-return"),
    (REPLACEMENT_SET, "consolidation"),
)
"""Annotations with which a method chooses a node before it is drained, with the method's policy."""
_LAUNCHES_FOR = timedelta(minutes=15)
"""A replacement counts as launching for this long after it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """How a node is or will be disrupted, or that it rests after a failed drain."""

    reason: str
    """The value of its draining taint; before there is one, the policy that chose the node."""
    policy: PolicyName
    """The policy of the actions that continue it."""
    kind: DisruptionClass
    """Forced: the node goes in any case. Graceful: it is given back if it is needed."""
    stage: Stage
    started: datetime | None = None
    """When the drain began; None before it, or if the annotation is unreadable."""
    deadline: datetime | None = None
    """When EC2 ends the instance of a forced disruption."""
    progress: DrainProgress | None = None
    """How far a drain in rounds has come; None for a drain in one round."""
    failures: int = 0
    """How many drains of the node failed in a row."""
    rests_until: datetime | None = None
    """Until when a cancelled drain is not tried again."""

    def __str__(self) -> str:
        """Return the state of the disruption in words."""
        parts = [f"{self.stage} ({self.reason}, {self.kind})"]
        if self.started is not None and self.stage in {"draining", "empty"}:
            parts.append(f"since {self.started:%H:%M:%S}")
        if self.progress is not None:
            parts.append(f"in {counted_noun(self.progress.rounds, 'round')}")
        if self.deadline is not None:
            parts.append(f"its instance ends at {self.deadline:%H:%M:%S}")
        if self.rests_until is not None:
            failed = counted_noun(self.failures, "failed drain")
            parts.append(f"after {failed}, not again before {self.rests_until:%H:%M:%S}")
        return ", ".join(parts)


def disruption_of(view: ClusterView, node: Node) -> Disruption | None:
    """Return what is happening to the node; None if nothing is, and it does not rest."""
    if any(taint.key == DRAINING_TAINT for taint in node.taints):
        return _under_way(view, node)
    notice = view.inventory.interrupted.get(node.name)
    if notice is not None:
        return Disruption(
            reason="interruption",
            policy="interruption",
            kind="forced",
            stage="requested",
            deadline=notice.deadline,
        )
    return _chosen(view, node) or _resting(view, node)


def _under_way(view: ClusterView, node: Node) -> Disruption:
    graceful = is_draining_voluntarily(node)
    policy: PolicyName = drain_policy(node) if graceful else "interruption"
    values = sorted(taint.value for taint in node.taints if taint.key == DRAINING_TAINT)
    notice = view.inventory.interrupted.get(node.name)
    stage: Stage = "draining" if node.name in view.nodes_in_use else "empty"
    if node.name in view.inventory.leaving:
        stage = "terminated"
    failure = last_failure(view, node)
    return Disruption(
        reason=values[0],
        policy=policy,
        kind="graceful" if graceful else "forced",
        stage=stage,
        started=drain_started(view, node),
        deadline=None if notice is None else notice.deadline,
        progress=drain_progress(node, view.at),
        failures=0 if failure is None else failure.count,
    )


def _chosen(view: ClusterView, node: Node) -> Disruption | None:
    """Return what will happen to a node that a method has chosen and that is not drained yet."""
    asked = read_attempts(node.annotations.get(REPLACEMENT_ASKED, ""), view.at, _LAUNCHES_FOR)
    launching = asked is not None
    chosen = (policy for key, policy in _REQUESTED if key in node.annotations)
    policy = next((p for p in chosen if p != "rolling-update" or _is_in_batch(view, node)), None)
    if policy is None and not launching:
        return None
    stage: Stage = "replacement-launching" if launching else "requested"
    policy = policy or "consolidation"
    return Disruption(reason=policy, policy=policy, kind="graceful", stage=stage)


def _is_in_batch(view: ClusterView, node: Node) -> bool:
    """Return whether the node is in the batch of a rolling update that is going on.

    The annotation alone may be left from an update that is over.
    """
    key = view.inventory.fleet_of_node.get(node.name)
    update = None if key is None else view.inventory.updates.get(key)
    return update is not None and node.name in update.batch


def _resting(view: ClusterView, node: Node) -> Disruption | None:
    """Return the rest of a node whose last drain failed recently; None if it does not rest."""
    failure, rests = last_failure(view, node), rests_until(view, node)
    if failure is None or rests is None:
        return None
    return Disruption(
        reason="drain-failed",
        policy="scale-in",
        kind="graceful",
        stage="cancelled",
        failures=failure.count,
        rests_until=rests,
    )
