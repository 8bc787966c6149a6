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
    lasted: timedelta
    """From the first of these plans to the last, without the time in which cycles failed."""


@dataclass(slots=True)
class UnboundPods:
    """Keeps for how long pods have had room on nodes that exist."""

    _kept: tuple[UnboundPod, ...] = field(default=())
    _planned_at: datetime | None = None
    """Time of the last plan; None: there was none, or a cycle has failed since."""

    def note(self, plan: Plan) -> None:
        """Note a new plan; a pod that it does not place on a node that exists is forgotten."""
        passed = max(timedelta(), plan.at - (self._planned_at or plan.at))
        lasted = {unbound_pod.pod: unbound_pod.lasted + passed for unbound_pod in self._kept}
        self._kept = tuple(
            UnboundPod(pod=pod, node=node, lasted=lasted.get(pod, timedelta()))
            for pod, node in pods_on_existing_nodes(plan.placements)
        )
        self._planned_at = plan.at

    def failed(self) -> None:
        """Note a cycle without a plan: the time until the next plan does not count."""
        self._planned_at = None

    @property
    def lasting(self) -> tuple[UnboundPod, ...]:
        """Return those that have waited for `UNBOUND_FOR`, the longest waiting first."""
        unbound_pods = [
            unbound_pod for unbound_pod in self._kept if unbound_pod.lasted >= UNBOUND_FOR
        ]
        return tuple(sorted(unbound_pods, key=lambda each: (-each.lasted, str(each.pod))))
