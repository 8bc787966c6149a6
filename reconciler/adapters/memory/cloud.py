"""The Cloud port over the in-memory world."""

from collections.abc import Sequence
from dataclasses import replace

from reconciler.adapters.memory.fleet_record import FleetRecord
from reconciler.adapters.memory.world import MemoryWorld
from reconciler.model.errors import NotFound, Refused, TerminationProtected, Unavailable
from reconciler.model.fleet import Fleet, Instance, Provider
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import CloudState
from reconciler.ports.cloud import lowered_target


class MemoryCloud:
    """EC2 of a world.

    Args:
        world: The world.
        provider: The provider whose fleets it shows; None: all fleets.
    """

    def __init__(self, world: MemoryWorld, provider: Provider | None = None) -> None:
        self._world = world
        self._provider = provider
        self._fleets = world.fleets
        self.silent_regions: set[Region] = set()
        """Regions that do not answer."""
        self._frozen: CloudState | None = None

    def freeze(self, *, frozen: bool = True) -> None:
        """Make describes answer with the present state from now on, or with the live one again.

        Answers of EC2 are eventually consistent; what is read by id before acting stays live.
        """
        self._frozen = self._observe(sorted(self._regions())) if frozen else None

    def _regions(self) -> set[Region]:
        return {record.shape.region for record in self._fleets.records.values()}

    def observe(self, regions: Sequence[Region]) -> CloudState:
        """Return all fleets and instances of the regions that answer."""
        with self._world.log.call("observe_cloud", ", ".join(regions)):
            answering = [region for region in dict.fromkeys(regions) if not self._silent(region)]
            if regions and not answering:
                raise Unavailable(regions[0], "does not answer")
            silent = frozenset(regions) - frozenset(answering)
            providers = frozenset({self._provider} if self._provider else ())
            state = self._frozen or self._observe(answering)
            return replace(state, silent=silent, providers=providers)

    def _observe(self, answering: Sequence[Region]) -> CloudState:
        instances = sorted(
            (i for i in self._fleets.instances.values() if i.region in answering and self._has(i)),
            key=lambda each: (each.region, each.id),
        )
        return CloudState(
            fleets=tuple(
                self._fleets.fleet(record)
                for region in sorted(answering)
                for record in self._fleets.of_region(region)
                if self._provider in {None, record.shape.provider}
            ),
            instances=tuple(map(self._fleets.as_shown, instances)),
            regions=frozenset(answering),
            instances_known=True,
            instances_asked=True,
        )

    def _has(self, instance: Instance) -> bool:
        """Return whether the instance is this provider's; instances of deleted fleets are EC2's."""
        record = self._fleets.records.get(instance.fleet_id) if instance.fleet_id else None
        return self._provider in {None, record.shape.provider if record else "ec2-fleet"}

    def fleet(self, region: Region, fleet_id: FleetId) -> Fleet:
        """Return one fleet, as it is."""
        with self._world.log.call("fleet", fleet_id):
            return self._fleets.fleet(self._record(region, fleet_id))

    def fleet_state(self, region: Region, fleet_id: FleetId) -> str:
        """Return the state of one fleet, as it is."""
        return self.fleet(region, fleet_id).state

    def set_target_capacity(self, region: Region, fleet_id: FleetId, capacity: int) -> None:
        """Set the fleet's target to `capacity` and end none; a group is never lowered.

        Raises:
            Refused: A group would end instances of its own choice.
        """
        record = self._fleets.shown(region, fleet_id)
        if record is not None and record.is_group and capacity < record.target:
            raise Refused(fleet_id, f"is not lowered from {record.target} to {capacity}")
        arguments = (record.id if record is not None else fleet_id, capacity)
        with self._world.log.call("set_target_capacity", fleet_id, str(capacity), arguments):
            self._fleets.set_target(self._record(region, fleet_id), capacity)

    def instances(self, region: Region, ids: Sequence[InstanceId]) -> tuple[Instance, ...]:
        """Return those of the instances that are known."""
        with self._world.log.call("instances", ", ".join(ids)):
            self._require(region)
            found = (self._fleets.instances.get(each) for each in sorted(set(ids)))
            known = (
                instance for instance in found if instance is not None and instance.region == region
            )
            return tuple(map(self._fleets.as_shown, known))

    def terminate(
        self,
        region: Region,
        fleet_id: FleetId,
        ids: Sequence[InstanceId],
        *,
        lower_target: bool,
        expected_target: int | None = None,
    ) -> int | None:
        """Lower the target, then end the instances, as for EC2 Fleet; for groups one by one."""
        record = self._fleets.shown(region, fleet_id)
        if self._provider == "asg" or (record is not None and record.is_group):
            return self._end_in_group(
                region, fleet_id, ids, lower_target=lower_target, expected_target=expected_target
            )
        target: int | None = None
        if lower_target:
            target = lowered_target(self.fleet(region, fleet_id), ids, expected_target)
            self.set_target_capacity(region, fleet_id, target)
        try:
            self.terminate_instances(region, ids)
        except TerminationProtected as error:
            error.target = target
            raise
        return target

    def _end_in_group(
        self,
        region: Region,
        fleet_id: FleetId,
        ids: Sequence[InstanceId],
        *,
        lower_target: bool,
        expected_target: int | None,
    ) -> int | None:
        instances = self._fleets.instances
        alive = [e for e in sorted(set(ids)) if e in instances and instances[e].counts]
        if not lower_target and not alive:
            return None
        live = self.fleet(region, fleet_id)
        if lower_target:
            lowered_target(live, ids, expected_target)
        for each in alive:
            arguments = (each, lower_target)
            with self._world.log.call("terminate_in_group", each, arguments=arguments):
                record = self._record(region, fleet_id)
                if lower_target and each in instances and instances[each].counts:
                    self._fleets.lower(record)
                self._fleets.terminate(each)
        return live.target_capacity - len(alive) if lower_target else None

    def terminate_instances(self, region: Region, ids: Sequence[InstanceId]) -> None:
        """Terminate instances; those that are gone count as terminated.

        Raises:
            TerminationProtected: Some are protected; the others are terminated.
        """
        protected = self._fleets.termination_protected.intersection(ids)
        with self._world.log.call("terminate_instances", ", ".join(ids), arguments=tuple(ids)):
            self._require(region)
            for each in ids:
                if each not in protected:
                    self._fleets.terminate(each)
        if protected:
            raise TerminationProtected(", ".join(sorted(protected)), "is protected", protected)

    def _silent(self, region: Region) -> bool:
        return region in self.silent_regions

    def _require(self, region: Region) -> None:
        if self._silent(region):
            raise Unavailable(region, "does not answer")

    def _record(self, region: Region, fleet_id: FleetId) -> FleetRecord:
        self._require(region)
        record = self._fleets.shown(region, fleet_id)
        if record is None:
            raise NotFound(f"fleet {fleet_id}", f"is not in {region}")
        return record
