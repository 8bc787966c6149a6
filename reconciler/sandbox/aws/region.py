"""EC2 Fleet in one account and Region: the fleets, their instances, and what joins the two."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType

from reconciler.sandbox.aws.errors import Ec2Fault, fleet_not_found
from reconciler.sandbox.aws.faults.injected import Faults
from reconciler.sandbox.aws.faults.scripted import LaunchPlace
from reconciler.sandbox.aws.moto_server.surface import MotoInstance, MotoRegion, new_fleet_id
from reconciler.sandbox.aws.scaling_region import ScalingRegion
from reconciler.sandbox.aws.state.fleet import Fleet
from reconciler.sandbox.aws.state.launcher import EndReason, InstanceState, Launcher, Transition
from reconciler.sandbox.aws.state.past_states import PastStates, RegionState
from reconciler.sandbox.aws.values import (
    Delays,
    FleetChange,
    FleetRequest,
    LaunchRefusal,
    Lifecycle,
    Member,
    Pool,
)
from reconciler.sandbox.faults.base import PoolFault

FLEET_ID_TAG = "aws:ec2:fleet-id"


class Ec2Region:
    """The fleets of one Region. Not thread-safe: the caller holds the world's lock."""

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
        self._past = PastStates()
        self.groups = ScalingRegion(self, moto, delays)
        self.hidden: frozenset[str] = frozenset()
        """Instances that a stale answer does not have yet."""

    def fleet(self, fleet_id: str) -> Fleet:
        """Return one fleet, deleted ones too.

        Raises:
            Ec2Fault: There is none of that id.
        """
        if fleet_id not in self.fleets:
            raise fleet_not_found(fleet_id)
        return self.fleets[fleet_id]

    def create_fleet(self, request: FleetRequest, tags: Mapping[str, str], now: datetime) -> Fleet:
        """Create a fleet; a repeated client token returns the fleet made earlier."""
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
        fleet = self.fleet(fleet_id)
        slow = self._faults.script.modifying(self._names(fleet), now)
        if slow is None:
            fleet.modify(change, now)
        else:
            fleet.modify(change, now, lasts_seconds=slow.lasts_seconds, refuse=slow.refuse)

    def delete_fleet(self, fleet: Fleet, *, terminate: bool, now: datetime) -> None:
        """Take a DeleteFleets for one live fleet."""
        self.terminate(fleet.delete(terminate=terminate, now=now), now, EndReason.FLEET)

    def terminate(self, instance_ids: Sequence[str], now: datetime, reason: EndReason) -> None:
        """Begin to end instances from fleets; foreign ids are a bug."""
        begun = self._launcher.terminate(instance_ids, now, reason)
        self._note(begun, now)

    def is_member(self, instance_id: str) -> bool:
        """Return whether a fleet launched the instance and the API still shows it."""
        return instance_id in self._launcher

    def instances(self) -> Mapping[str, MotoInstance]:
        """Return the instances that fleets launched and that the API still shows, oldest first."""
        return MappingProxyType(self._instances)

    def running_under(self, rule: PoolFault) -> Iterator[str]:
        """Yield the running spot members that a fault applies to, oldest first."""
        for fleet in self.fleets.values():
            names = self._names(fleet)
            for member in fleet.members:
                place = LaunchPlace.of(member.pool, member.lifecycle, names)
                instance = self._instances.get(member.instance_id)
                running = instance is not None and instance.state == "running"
                if running and member.lifecycle == "spot" and place.falls_under(rule):
                    yield member.instance_id

    def _names(self, fleet: Fleet) -> frozenset[str]:
        return frozenset({fleet.id, self.moto.tags(fleet.id).get("fleet", fleet.id)})

    def record(self, now: datetime, keep_seconds: float) -> None:
        """Record the present state for as long as stale answers may need it; 0: not at all."""
        if not keep_seconds:
            self._past.forget()
            return
        fleets = {key: fleet.as_it_is() for key, fleet in self.fleets.items()}
        states = {
            key: InstanceState(moto_instance.state)
            for key, moto_instance in self._instances.items()
        }
        self._past.keep(RegionState(at=now, fleets=fleets, states=states), keep_seconds)

    @contextmanager
    def as_of(self, moment: datetime) -> Iterator[None]:
        """Answer describes in the block with an earlier state; what was not recorded is current."""
        view = self._past.at(moment)
        if view is None:
            yield
            return
        present = {
            key: InstanceState(moto_instance.state)
            for key, moto_instance in self._instances.items()
        }
        fleets, self.fleets = self.fleets, dict(view.fleets)
        self.hidden = frozenset(present) - frozenset(view.states)
        try:
            self._show({key: s for key, s in view.states.items() if key in present})
            yield
        finally:
            self._show(present)
            self.fleets, self.hidden = fleets, frozenset()

    def _show(self, states: Mapping[str, InstanceState]) -> None:
        for instance_id, state in states.items():
            self._instances[instance_id].show_state(state)

    def advance(self, now: datetime) -> tuple[Transition, ...]:
        """Do all that is due in this Region; return the new transitions of instances."""
        while True:
            reached = self._launcher.advance(now)
            self._note(reached, now)
            before = len(self._transitions)
            for fleet in self.fleets.values():
                self._advance_fleet(fleet, now)
            self.groups.advance(now)
            if not reached and len(self._transitions) == before:
                break
        self._instances = {
            key: instance for key, instance in self._instances.items() if key in self._launcher
        }
        done, self._transitions = tuple(self._transitions), []
        return done

    def next_due(self, now: datetime) -> datetime | None:
        """Return the first moment after `now` at which `advance` has something to do."""
        moments = [fleet.next_due(now) for fleet in self.fleets.values()]
        moments += [self._launcher.next_due(), self.groups.next_due(now)]
        return min((moment for moment in moments if moment is not None), default=None)

    def _advance_fleet(self, fleet: Fleet, now: datetime) -> None:
        fleet.advance(now, _Ec2OfFleet(self, now))

    def _note(self, transitions: Sequence[Transition], now: datetime) -> None:
        """Pass the transitions of instances on to the fleets and groups they belong to."""
        self._transitions.extend(transitions)
        for transition in transitions:
            fleet = self.fleets.get(self._owner_ids[transition.instance_id])
            if fleet is None:
                self.groups.note(self._owner_ids[transition.instance_id], transition, now)
                continue
            if transition.state in {InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED}:
                fleet.member_leaving(transition.instance_id, now)
            if transition.state == InstanceState.TERMINATED:
                fleet.member_gone(transition.instance_id)

    def launch(
        self, fleet: Fleet, pool: Pool, lifecycle: Lifecycle, now: datetime
    ) -> Member | LaunchRefusal:
        """Start one instance for a fleet, or return why not."""
        tags = {**fleet.request.instance_tags, FLEET_ID_TAG: fleet.id}
        instance = self.start(fleet.id, self._names(fleet), tags, pool, lifecycle, now)
        if isinstance(instance, LaunchRefusal):
            return instance
        return Member(
            instance_id=instance.instance_id,
            number=len(self._owner_ids),
            pool=pool,
            lifecycle=lifecycle,
            spot_request_id=instance.spot_request_id,
            launched_at=now,
        )

    def start(
        self,
        owner: str,
        names: frozenset[str],
        tags: Mapping[str, str],
        pool: Pool,
        lifecycle: Lifecycle,
        now: datetime,
    ) -> MotoInstance | LaunchRefusal:
        """Start one instance, or return why not.

        Args:
            owner: Id of the fleet, or name of the group, that it belongs to.
            names: The owner's names in faults.
            tags: Tags in addition to those of the launch template.
            pool: Where it comes from.
            lifecycle: Spot or on-demand.
            now: The time.
        """
        place = LaunchPlace.of(pool, lifecycle, names)
        refusal = self._faults.take(pool, lifecycle, place, now)
        if refusal is not None:
            return refusal
        try:
            instance = self.moto.launch(pool, lifecycle, tags, now)
        except Ec2Fault as fault:
            return LaunchRefusal(code=fault.code, message=fault.message)
        self._instances[instance.instance_id] = instance
        self._owner_ids[instance.instance_id] = owner
        fate = self._faults.script.launch(place, instance.image_id, now)
        instance.joins = fate.joins
        self._launcher.started(instance, now, fate.launch_seconds)
        self._transitions.append(
            Transition(instance_id=instance.instance_id, state=InstanceState.PENDING)
        )
        return instance


class _Ec2OfFleet:
    """What a fleet does in EC2, at one moment; implements `state.fleet.Ec2`."""

    def __init__(self, region: Ec2Region, now: datetime) -> None:
        self._region = region
        self._now = now

    def launch(self, fleet: Fleet, pool: Pool, lifecycle: Lifecycle) -> Member | LaunchRefusal:
        """Start one instance, or say why not."""
        return self._region.launch(fleet, pool, lifecycle, self._now)

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Begin to end instances."""
        self._region.terminate(instance_ids, self._now, EndReason.FLEET)
