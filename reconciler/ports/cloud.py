"""Fleets and instances of one provider (EC2 Fleet, or EC2 Auto Scaling) over all regions."""

from collections.abc import Sequence
from typing import Protocol

from reconciler.model.errors import Refused
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import CloudState


class Cloud(Protocol):
    """EC2, limited to what has our tags.

    Every method may raise Throttled, Forbidden or Unavailable (nothing was changed) and, those
    that change something, OutcomeUnknown (observe before deciding again).
    """

    def observe(self, regions: Sequence[Region]) -> CloudState:
        """Read fleets, their failed launches and instances: one describe of each kind per region.

        A region that does not answer is left out of `CloudState.regions`.
        """
        ...

    def fleet(self, region: Region, fleet_id: FleetId) -> Fleet:
        """Return one fleet, read now.

        Raises:
            NotFound: The fleet is gone.
        """
        ...

    def fleet_state(self, region: Region, fleet_id: FleetId) -> str:
        """Return the provider's state of a fleet, read now, of any type and whoever owns it.

        Raises:
            NotFound: There is none with that id.
        """
        ...

    def set_target_capacity(self, region: Region, fleet_id: FleetId, capacity: int) -> None:
        """Set the fleet's target to an absolute number of instances; this never ends one.

        Source: EC2 ModifyFleet with ExcessCapacityTerminationPolicy=no-termination (no client
        token, absolute value: repeating it is harmless).

        Raises:
            NotFound: The fleet is gone.
            Conflict: The fleet is being modified; try again after a pause.
        """
        ...

    def instances(self, region: Region, ids: Sequence[InstanceId]) -> tuple[Instance, ...]:
        """Return those of the instances that still exist, read now; unknown ids are left out."""
        ...

    def terminate(
        self,
        region: Region,
        fleet_id: FleetId,
        ids: Sequence[InstanceId],
        *,
        lower_target: bool,
        expected_target: int | None = None,
    ) -> int | None:
        """Terminate instances of one fleet; those that are gone already count as terminated.

        The provider orders its own calls so that a crash between them leaves too many instances
        and never makes the fleet replace one: EC2 Fleet lowers the target first, an Auto Scaling
        group terminates each with ShouldDecrementDesiredCapacity.

        Args:
            region: Where they are.
            fleet_id: Their fleet; without `lower_target` it may be gone.
            ids: The instances.
            lower_target: Whether the target is lowered by the number of instances; if not, the
                fleet replaces them.
            expected_target: The target that the decision is based on; None: any.

        Returns:
            The new target; None when it was not lowered.

        Raises:
            Refused: The target is not the expected one: another writer changed it, or a reply was
                lost. Nothing was changed.
            NotFound: The fleet is gone.
            Conflict: The fleet is being modified; nothing was changed.
            TerminationProtected: EC2 refuses to end some of the instances; the others are
                terminated. A target that was lowered before is still lowered for all of them.
        """
        ...


def lowered_target(fleet: Fleet, ids: Sequence[InstanceId], expected_target: int | None) -> int:
    """Return the fleet's target without these instances; never below 0.

    Raises:
        Refused: The current target is not the expected one.
    """
    target = fleet.target_capacity
    if expected_target is not None and target != expected_target:
        raise Refused(f"the target of {fleet.name}", f"is {target}, not {expected_target}")
    return max(0, target - len(set(ids)))
