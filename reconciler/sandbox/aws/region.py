"""EC2 Fleet in one account and Region: the fleets, their instances, and what joins the two."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from reconciler.sandbox.aws.errors import Ec2Fault, fleet_not_found
from reconciler.sandbox.aws.faults import Faults
from reconciler.sandbox.aws.fleet_backend import Fleet
from reconciler.sandbox.aws.launcher import EndReason, InstanceState, Launcher, Transition
from reconciler.sandbox.aws.moto_surface import MotoInstance, MotoRegion, new_fleet_id
from reconciler.sandbox.aws.values import (
    Delays,
    FleetChange,
    FleetRequest,
    LaunchRefusal,
    Lifecycle,
    Member,
    Pool,
)

FLEET_ID_TAG = "aws:ec2:fleet-id"


class Ec2Region:
    """The fleets of one Region. Not safe for threads: the caller holds the world's lock."""

    def __init__(self, moto: MotoRegion, *, delays: Delays, faults: Faults) -> None:
        self.moto = moto
        self.fleets: dict[str, Fleet] = {}
        self._delays = delays
        self._faults = faults
        self._launcher = Launcher(delays)
        self._instances: dict[str, MotoInstance] = {}
        self._by_token: dict[str, str] = {}
        self._owner_ids: dict[str, str] = {}
        self._transitions: list[Transition] = []

    def fleet(self, fleet_id: str) -> Fleet:
        """One fleet, deleted ones too.

        Raises:
            Ec2Fault: There is none of that id.
        """
        if fleet_id not in self.fleets:
            raise fleet_not_found(fleet_id)
        return self.fleets[fleet_id]

    def create_fleet(self, request: FleetRequest, tags: Mapping[str, str], now: datetime) -> Fleet:
        """Create a fleet; a client token that was seen before gives the fleet made then."""
        known = self._by_token.get(request.client_token or "")
        if known is not None:
            return self.fleets[known]
        fleet = Fleet(fleet_id=new_fleet_id(), request=request, created_at=now, delays=self._delays)
        self.moto.add_tags(fleet.id, tags)
        self.fleets[fleet.id] = fleet
        if request.client_token:
            self._by_token[request.client_token] = fleet.id
        if request.fleet_type == "instant":
            self._advance_fleet(fleet, now)
        return fleet

    def modify_fleet(self, fleet_id: str, change: FleetChange, now: datetime) -> None:
        """Take a ModifyFleet.

        Raises:
            Ec2Fault: No such fleet, or it cannot be modified.
        """
        self.fleet(fleet_id).modify(change, now)

    def delete_fleet(self, fleet: Fleet, *, terminate: bool, now: datetime) -> None:
        """Take a DeleteFleets for one live fleet."""
        self.terminate(fleet.delete(terminate=terminate, now=now), now, EndReason.FLEET)

    def terminate(self, instance_ids: Sequence[str], now: datetime, reason: EndReason) -> None:
        """Begin to end instances that came from fleets; foreign ids are a mistake."""
        begun = self._launcher.terminate(instance_ids, now, reason)
        self._note(begun, now)

    def is_member(self, instance_id: str) -> bool:
        """Whether the instance came from a fleet and is not yet forgotten."""
        return instance_id in self._launcher

    def instances(self) -> Mapping[str, MotoInstance]:
        """The instances that came from fleets, oldest first, until they are forgotten."""
        return MappingProxyType(self._instances)

    def advance(self, now: datetime) -> tuple[Transition, ...]:
        """Do all that is due in this Region; returns what became of instances since last time."""
        while True:
            reached = self._launcher.advance(now)
            self._note(reached, now)
            before = len(self._transitions)
            for fleet in self.fleets.values():
                self._advance_fleet(fleet, now)
            if not reached and len(self._transitions) == before:
                break
        self._instances = {
            key: instance for key, instance in self._instances.items() if key in self._launcher
        }
        done, self._transitions = tuple(self._transitions), []
        return done

    def next_due(self, now: datetime) -> datetime | None:
        """The first moment after `now` at which `advance` has something to do."""
        moments = [fleet.next_due(now) for fleet in self.fleets.values()]
        moments.append(self._launcher.next_due())
        return min((moment for moment in moments if moment is not None), default=None)

    def _advance_fleet(self, fleet: Fleet, now: datetime) -> None:
        fleet.advance(now, _FleetHands(self, now))

    def _note(self, transitions: Sequence[Transition], now: datetime) -> None:
        """Tell the fleets what became of their members."""
        self._transitions.extend(transitions)
        for transition in transitions:
            fleet = self._fleet_of(transition.instance_id)
            if transition.state in {InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED}:
                fleet.member_leaving(transition.instance_id, now)
            if transition.state == InstanceState.TERMINATED:
                fleet.member_gone(transition.instance_id)

    def _fleet_of(self, instance_id: str) -> Fleet:
        return self.fleets[self._owner_ids[instance_id]]

    def launch(
        self, fleet: Fleet, pool: Pool, lifecycle: Lifecycle, now: datetime
    ) -> Member | LaunchRefusal:
        """Start one instance for a fleet, or say why not."""
        refusal = self._faults.take(pool, lifecycle)
        if refusal is not None:
            return refusal
        tags = {**fleet.request.instance_tags, FLEET_ID_TAG: fleet.id}
        try:
            instance = self.moto.launch(pool, lifecycle, tags, now)
        except Ec2Fault as fault:
            return LaunchRefusal(code=fault.code, message=fault.message)
        self._instances[instance.instance_id] = instance
        self._owner_ids[instance.instance_id] = fleet.id
        self._launcher.started(instance, now)
        self._transitions.append(
            Transition(instance_id=instance.instance_id, state=InstanceState.PENDING)
        )
        return Member(
            instance_id=instance.instance_id,
            number=len(self._owner_ids),
            pool=pool,
            lifecycle=lifecycle,
            spot_request_id=instance.spot_request_id,
            launched_at=now,
        )


class _FleetHands:
    """What a fleet does in EC2, at one moment; implements `fleet_backend.Ec2`."""

    def __init__(self, region: Ec2Region, now: datetime) -> None:
        self._region = region
        self._now = now

    def launch(self, fleet: Fleet, pool: Pool, lifecycle: Lifecycle) -> Member | LaunchRefusal:
        """Start one instance, or say why not."""
        return self._region.launch(fleet, pool, lifecycle, self._now)

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Begin to end instances."""
        self._region.terminate(instance_ids, self._now, EndReason.FLEET)
