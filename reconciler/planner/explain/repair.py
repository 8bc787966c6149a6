"""A pod and a fleet's row that are changed step by step until they fit, with the changes."""

from dataclasses import dataclass, replace

from reconciler.model.cluster import Pod
from reconciler.planner.placement.simulation import RowSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A pod and a fleet's row, and the changes made so that the row takes the pod."""

    pod: Pod
    row: RowSpec
    changes: tuple[str, ...] = ()
    weight: int = 0
    """The weight of the changes: one of the pod's meaning weighs more than one of a number."""
    loss: float = 0.0
    """The sum of the shares by which requests were lowered."""

    def with_pod(self, pod: Pod, change: str, weight: int) -> "Repair":
        """Return the repair with one more change, of the pod."""
        changes = (*self.changes, change)
        return replace(self, pod=pod, changes=changes, weight=self.weight + weight)

    def with_row(self, row: RowSpec, change: str, weight: int) -> "Repair":
        """Return the repair with one more change, of the fleet."""
        changes = (*self.changes, change)
        return replace(self, row=row, changes=changes, weight=self.weight + weight)


def spec_changed(pod: Pod, **changed: object) -> Pod:
    """Return the pod with other fields in its spec."""
    return replace(pod, spec=replace(pod.spec, **changed))  # type: ignore[arg-type]  # names vary
