"""The state machine of one Auto Scaling group: pure logic, driven by the time it is given.

It launches and terminates through the `Ec2` of its caller; it never sleeps, never reads a clock and
uses neither moto nor HTTP. Source: EC2 Auto Scaling user guide, "Amazon EC2 Auto Scaling instance
lifecycle", "Verify a scaling activity" and "Lifecycle hooks", read 2026-11.
"""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Literal, Protocol

from reconciler.sandbox.aws.values import Delays, LaunchRefusal, Lifecycle, Pool

Transition = Literal["launch", "terminate"]
ACTIVITIES_KEPT: Final = 200
HOOK_SECONDS_MAX: Final = 172_800.0
"""Whatever heartbeats are recorded, a hook is over after 48 hours or 100 times its timeout."""


class GroupState(StrEnum):
    """`LifecycleState` of a member."""

    PENDING = "Pending"
    PENDING_WAIT = "Pending:Wait"
    IN_SERVICE = "InService"
    STANDBY = "Standby"
    TERMINATING = "Terminating"
    TERMINATING_WAIT = "Terminating:Wait"
    TERMINATING_PROCEED = "Terminating:Proceed"


LEAVING: Final = frozenset(
    {GroupState.TERMINATING, GroupState.TERMINATING_WAIT, GroupState.TERMINATING_PROCEED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A lifecycle hook."""

    name: str
    transition: Transition
    timeout_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShape:
    """The owner's current settings of a group."""

    name: str
    desired: int
    min_size: int
    max_size: int
    pools: tuple[Pool, ...]
    spot_above_base: float
    """Share of the instances beyond the base that are spot, from 0 to 1."""
    on_demand_base: int
    suspended: frozenset[str] = frozenset()
    hooks: tuple[Hook, ...] = ()
    protects_new: bool = False


@dataclass(slots=True, kw_only=True)
class GroupMember:
    """An instance of a group."""

    instance_id: str
    pool: Pool
    lifecycle: Lifecycle
    version: str
    launched_at: datetime
    state: GroupState = GroupState.PENDING
    protected: bool = False
    token: str = ""
    """Of the lifecycle action that it waits for."""
    hook: Hook | None = None
    waits_until: datetime | None = None
    waits_at_most_until: datetime | None = None
    activity: "Activity | None" = None


@dataclass(slots=True, kw_only=True)
class Activity:
    """One scaling activity."""

    id: str
    description: str
    cause: str
    started_at: datetime
    status: Literal["InProgress", "Successful", "Failed"] = "InProgress"
    message: str = ""
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """An instance that was launched."""

    instance_id: str
    version: str


class Ec2(Protocol):
    """What a group can do in EC2."""

    def launch(self, pool: Pool, lifecycle: Lifecycle) -> Launched | LaunchRefusal:
        """Start one instance, which is pending at first, or say why not."""
        ...

    def terminate(self, instance_id: str) -> None:
        """Begin to end an instance."""
        ...

    def announce(self, member: GroupMember) -> None:
        """Tell EventBridge that a member waits for a lifecycle action."""
        ...


@dataclass(slots=True)
class ScalingGroup:
    """One group and its members."""

    name: str
    delays: Delays
    members: dict[str, GroupMember] = field(default_factory=dict)
    activities: list[Activity] = field(default_factory=list)
    """Newest first."""
    refreshes_until: datetime | None = None
    """Until when an instance refresh is in progress."""
    _short_since: datetime | None = None
    _retry_at: datetime | None = None
    _desired: int | None = None
    _serial: int = 0

    def counting(self) -> list[GroupMember]:
        """Return the members that fulfil the desired capacity."""
        aside = LEAVING | {GroupState.STANDBY}
        return [member for member in self.members.values() if member.state not in aside]

    def end(self, shape: GroupShape, instance_id: str, now: datetime, ec2: Ec2) -> Activity:
        """Take one member out of service; those that are leaving already go on."""
        member = self.members[instance_id]
        if member.state not in LEAVING:
            self._leave(shape, member, "a user request", now, ec2)
        assert member.activity is not None, "whatever leaves has an activity"
        return member.activity

    def advance(self, shape: GroupShape, now: datetime, ec2: Ec2) -> None:
        """Do all that is due at `now`: settle hooks, launch what is missing, end excess."""
        if shape.desired != self._desired:
            self._desired, self._retry_at = shape.desired, None
        for member in list(self.members.values()):
            if member.waits_until is not None and now >= member.waits_until:
                self.complete(member, now, ec2)
        missing = shape.desired - len(self.counting())
        if missing > 0 and "Launch" not in shape.suspended:
            self._grow(shape, missing, now, ec2)
        else:
            self._short_since = None
        if missing < 0 and "Terminate" not in shape.suspended:
            self._shrink(shape, -missing, now, ec2)

    def running(self, shape: GroupShape, instance_id: str, now: datetime, ec2: Ec2) -> None:
        """Note that an instance runs: it is in service, or waits for a hook."""
        member = self.members.get(instance_id)
        if member is None or member.state != GroupState.PENDING:
            return
        if not self._wait(shape, member, "launch", GroupState.PENDING_WAIT, now, ec2):
            self._in_service(member, now)

    def gone(self, instance_id: str, now: datetime) -> None:
        """Note that an instance ended, for any reason, and remove it from the list."""
        member = self.members.pop(instance_id, None)
        if member is not None and member.activity is not None:
            self._finish(member.activity, now)

    def complete(self, member: GroupMember, now: datetime, ec2: Ec2) -> None:
        """Continue after a lifecycle action, or after its timeout."""
        member.waits_until, member.token, member.hook = None, "", None
        if member.state == GroupState.PENDING_WAIT:
            self._in_service(member, now)
        elif member.state == GroupState.TERMINATING_WAIT:
            member.state = GroupState.TERMINATING_PROCEED
            ec2.terminate(member.instance_id)

    def heartbeat(self, member: GroupMember, now: datetime) -> None:
        """Restart the hook's timeout for a waiting member."""
        assert member.hook is not None, "it waits for a hook"
        assert member.waits_at_most_until is not None, "a wait ends"
        longer = now + timedelta(seconds=member.hook.timeout_seconds)
        member.waits_until = min(longer, member.waits_at_most_until)

    def next_due(self, now: datetime) -> datetime | None:
        """Return the first moment after `now` at which `advance` has something to do unasked."""
        moments = [member.waits_until for member in self.members.values()]
        if self._short_since is not None:
            dispatched = self._short_since + timedelta(seconds=self.delays.dispatch_seconds)
            moments += [dispatched, self._retry_at]
        return min(
            (moment for moment in moments if moment is not None and moment > now), default=None
        )

    def _grow(self, shape: GroupShape, missing: int, now: datetime, ec2: Ec2) -> None:
        self._short_since = self._short_since or now
        dispatched = self._short_since + timedelta(seconds=self.delays.dispatch_seconds)
        if now < dispatched or (self._retry_at is not None and now < self._retry_at):
            return
        cause = (
            f"At {now:%Y-%m-%dT%H:%M:%SZ} an instance was started in response to a difference "
            f"between desired and actual capacity, increasing the capacity from "
            f"{shape.desired - missing} to {shape.desired}."
        )
        for _ in range(missing):
            if not self._launch(shape, cause, now, ec2):
                self._retry_at = now + timedelta(seconds=self.delays.retry_seconds)
                return
        self._short_since = self._retry_at = None

    def _launch(self, shape: GroupShape, cause: str, now: datetime, ec2: Ec2) -> bool:
        """Launch one instance in the zone with the fewest, of the first type that EC2 has there."""
        lifecycle = self._next_lifecycle(shape)
        refusal = LaunchRefusal(code="ValidationError", message="It names no instance type.")
        for pool in self._balanced(shape.pools):
            got = ec2.launch(pool, lifecycle)
            if isinstance(got, LaunchRefusal):
                refusal = got
                continue
            activity = self._note(f"Launching a new EC2 instance: {got.instance_id}", cause, now)
            self.members[got.instance_id] = GroupMember(
                instance_id=got.instance_id,
                pool=pool,
                lifecycle=lifecycle,
                version=got.version,
                launched_at=now,
                protected=shape.protects_new,
                activity=activity,
            )
            return True
        kind = "Spot" if lifecycle == "spot" else "On-Demand"
        activity = self._note("Launching a new EC2 instance", cause, now)
        activity.status, activity.ended_at = "Failed", now
        activity.message = (
            f"Could not launch {kind} Instances. {refusal.code} - {refusal.message} "
            "Launching EC2 instance failed."
        )
        return False

    def _next_lifecycle(self, shape: GroupShape) -> Lifecycle:
        """Return on-demand up to the base, then by share."""
        counts = Counter(group_member.lifecycle for group_member in self.counting())
        above = max(0, counts["on-demand"] + counts["spot"] + 1 - shape.on_demand_base)
        return "spot" if counts["spot"] < above * shape.spot_above_base else "on-demand"

    def _balanced(self, pools: Sequence[Pool]) -> list[Pool]:
        in_zone = Counter(group_member.pool.zone for group_member in self.counting())
        return sorted(pools, key=lambda pool: (in_zone[pool.zone], pool.order))

    def _shrink(self, shape: GroupShape, excess: int, now: datetime, ec2: Ec2) -> None:
        """End surplus members as AWS chooses them: of the fullest zone, the oldest."""
        for _ in range(excess):
            staying = [
                group_member for group_member in self.counting() if not group_member.protected
            ]
            in_zone = Counter(group_member.pool.zone for group_member in self.counting())
            if not staying:
                return
            victim = min(staying, key=lambda m: (-in_zone[m.pool.zone], m.launched_at))
            why = "a difference between desired and actual capacity"
            self._leave(shape, victim, why, now, ec2)

    def _leave(
        self,
        shape: GroupShape,
        member: GroupMember,
        why: str,
        now: datetime,
        ec2: Ec2,
    ) -> None:
        if member.activity is not None:
            self._finish(member.activity, now)
        cause = (
            f"At {now:%Y-%m-%dT%H:%M:%SZ} instance {member.instance_id} was taken out of service "
            f"in response to {why}."
        )
        described = f"Terminating EC2 instance: {member.instance_id}"
        member.activity = self._note(described, cause, now)
        member.state = GroupState.TERMINATING
        waiting = GroupState.TERMINATING_WAIT
        if not self._wait(shape, member, "terminate", waiting, now, ec2):
            ec2.terminate(member.instance_id)

    def _wait(
        self,
        shape: GroupShape,
        member: GroupMember,
        transition: Transition,
        state: GroupState,
        now: datetime,
        ec2: Ec2,
    ) -> bool:
        """Make the member wait for the group's hook; return whether there is one."""
        hook = next((each for each in shape.hooks if each.transition == transition), None)
        if hook is None:
            return False
        member.state, member.hook = state, hook
        member.token = self._new_id()
        member.waits_until = now + timedelta(seconds=hook.timeout_seconds)
        longest = min(HOOK_SECONDS_MAX, hook.timeout_seconds * 100)
        member.waits_at_most_until = now + timedelta(seconds=longest)
        ec2.announce(member)
        return True

    def _in_service(self, member: GroupMember, now: datetime) -> None:
        member.state = GroupState.IN_SERVICE
        if member.activity is not None:
            self._finish(member.activity, now)
            member.activity = None

    def _note(self, description: str, cause: str, now: datetime) -> Activity:
        activity = Activity(id=self._new_id(), description=description, cause=cause, started_at=now)
        self.activities.insert(0, activity)
        del self.activities[ACTIVITIES_KEPT:]
        return activity

    def _new_id(self) -> str:
        """Return an id in AWS's form that no other thing of the group has."""
        self._serial += 1
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.name}/{self._serial}"))

    def _finish(self, activity: Activity, now: datetime) -> None:
        if activity.ended_at is None:
            activity.status, activity.ended_at = "Successful", now
