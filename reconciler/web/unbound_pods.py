"""Pods for which a node that exists has room, and that kube-scheduler does not bind."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.ids import NodeName, PodKey
from reconciler.model.placements import pods_on_existing_nodes
from reconciler.model.plan import Plan

UNBOUND_FOR: Final = timedelta(minutes=10)
"""kube-scheduler looks again at each pod that it could not bind at least every five minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnboundPod:
    """A pod that each plan for some time has placed on a node that exists."""

    pod: PodKey
    node: NodeName
    """Where the last plan placed it."""
    since: datetime
    """Time of the first of these plans."""


@dataclass(slots=True)
class UnboundPods:
    """Keeps for how long pods have had room on nodes that exist."""

    _kept: tuple[UnboundPod, ...] = field(default=())

    def note(self, plan: Plan) -> None:
        """Note a new plan; a pod that it does not place on a node that exists is forgotten."""
        since = {each.pod: each.since for each in self._kept}
        self._kept = tuple(
            UnboundPod(pod=pod, node=node, since=since.get(pod, plan.at))
            for pod, node in pods_on_existing_nodes(plan.placements)
        )

    def at(self, now: datetime) -> tuple[UnboundPod, ...]:
        """Return those that have waited for `UNBOUND_FOR`, the longest waiting first."""
        found = [each for each in self._kept if now - each.since >= UNBOUND_FOR]
        return tuple(sorted(found, key=lambda each: (each.since, str(each.pod))))
