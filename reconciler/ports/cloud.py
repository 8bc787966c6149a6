"""Fleets and instances of one provider (EC2 Fleet, or EC2 Auto Scaling) over all regions."""

from collections.abc import Sequence
from typing import Protocol

from reconciler.model.fleet import Fleet, Instance
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import CloudState


class Cloud(Protocol):
    """EC2, limited to what carries our tags.

    Every method may raise Throttled, Forbidden or Unavailable (nothing was changed) and, those
    that change something, OutcomeUnknown (observe before deciding again).
    """

    def observe(self, regions: Sequence[Region]) -> CloudState:
        """Fleets, their capacity errors and instances: one describe of each kind per region.

        A region that does not answer is left out of `CloudState.regions`.
        """
        ...

    def fleet(self, region: Region, fleet_id: FleetId) -> Fleet:
        """One fleet, read now.

        Raises:
            NotFound: It is gone.
        """
        ...

    def set_target_capacity(self, region: Region, fleet_id: FleetId, capacity: int) -> None:
        """Make the fleet aim at an absolute number of instances; never ends one.

        Source: EC2 ModifyFleet with ExcessCapacityTerminationPolicy=no-termination (no client
        token, absolute value: repeating it is harmless).

        Raises:
            NotFound: The fleet is gone.
            Conflict: The fleet is being modified; try again after a pause.
        """
        ...

    def instances(self, region: Region, ids: Sequence[InstanceId]) -> tuple[Instance, ...]:
        """The instances of these ids that still exist, read now; unknown ids are left out."""
        ...

    def terminate_instances(self, region: Region, ids: Sequence[InstanceId]) -> None:
        """End instances; those that are gone already count as ended."""
        ...
