"""What a policy wants to begin to remove; `removals` decides whether the plan begins it."""

from dataclasses import dataclass

from reconciler.model.actions import AnyAction
from reconciler.model.ids import FleetKey, InstanceId, NodeName
from reconciler.model.plan import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One node, or one instance that never joined, that a plan newly begins to remove."""

    key: FleetKey
    node: NodeName | None
    """None where the instance never joined."""
    instance: InstanceId | None = None
    actions: tuple[AnyAction, ...]
    placements: tuple[Placement, ...] = ()
    """Where its pods go."""
