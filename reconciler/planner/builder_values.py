"""Values that policies pass to the PlanBuilder: removals, and reasons."""

from dataclasses import dataclass
from typing import NamedTuple

from reconciler.model.actions import AnyAction, PolicyName, TerminateInstance
from reconciler.model.ids import FleetKey, InstanceId, NodeName
from reconciler.model.plan import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One node, or one instance that never joined, that a plan begins to remove."""

    key: FleetKey
    node: NodeName | None
    """None if the instance never joined."""
    instance: InstanceId | None = None
    actions: tuple[AnyAction, ...]
    placements: tuple[Placement, ...] = ()
    """Where its pods go."""

    @property
    def targets_lowered(self) -> int:
        """Return by how much it lowers the fleet's target at once."""
        return sum(isinstance(a, TerminateInstance) and a.decrement for a in self.actions)


class KeptPod(NamedTuple):
    """Why a pod stays that a policy of the descheduler would evict."""

    policy: str
    reason: str
    """The policy's reason for evicting it."""
    code: str
    detail: str


class TargetReason(NamedTuple):
    """Why a target changes, and which policy changes it."""

    policy: PolicyName
    because: str
