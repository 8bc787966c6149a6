"""Auto Scaling in one account and Region: the groups and what joins them to EC2's instances."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from reconciler.sandbox.aws.errors import Ec2Fault
from reconciler.sandbox.aws.moto_server.groups import MotoGroups
from reconciler.sandbox.aws.moto_server.surface import MotoInstance, MotoRegion
from reconciler.sandbox.aws.state.launcher import EndReason, InstanceState, Transition
from reconciler.sandbox.aws.state.scaling_group import (
    Activity,
    GroupMember,
    GroupShape,
    GroupState,
    Launched,
    ScalingGroup,
)
from reconciler.sandbox.aws.values import Announcement, Delays, LaunchRefusal, Lifecycle, Pool


class Ec2(Protocol):
    """What groups need of EC2."""

    def start(
        self,
        owner: str,
        names: frozenset[str],
        tags: dict[str, str],
        pool: Pool,
        lifecycle: Lifecycle,
        now: datetime,
    ) -> MotoInstance | LaunchRefusal:
        """Start one instance, or say why not."""
        ...

    def terminate(self, instance_ids: Sequence[str], now: datetime, reason: EndReason) -> None:
        """Begin to end instances."""
        ...


class ScalingRegion:
    """The groups of one Region. Not thread-safe: the caller holds the world's lock."""

    def __init__(self, ec2: Ec2, moto: MotoRegion, delays: Delays) -> None:
        self._ec2 = ec2
        self._moto = moto
        self._delays = delays
        self.moto = MotoGroups(moto.account_id, moto.name, moto)
        self._groups: dict[str, ScalingGroup] = {}

    def group(self, name: str) -> ScalingGroup:
        """Return one group.

        Raises:
            Ec2Fault: There is none of that name.
        """
        if name not in self.moto.names():
            raise not_found(name)
        return self._groups.setdefault(name, ScalingGroup(name=name, delays=self._delays))

    def shape(self, name: str) -> GroupShape:
        """Return what its owner wants of a group just now."""
        return self.moto.shape(name)

    def of_member(self, instance_id: str) -> ScalingGroup:
        """Return the group that an instance belongs to.

        Raises:
            Ec2Fault: It is in none.
        """
        for group in self._groups.values():
            if instance_id in group.members:
                return group
        what = f"Instance Id not found - No managed instance found for instance ID: {instance_id}"
        raise Ec2Fault("ValidationError", what)

    def activities(self, name: str | None) -> list[tuple[str, Activity]]:
        """Return the activities of one group or of all, newest first, with the group's name."""
        groups = [self.group(name)] if name else list(self._groups.values())
        found = [(group.name, activity) for group in groups for activity in group.activities]
        return sorted(found, key=lambda each: each[1].started_at, reverse=True)

    def advance(self, now: datetime) -> None:
        """Do all that is due; members of a group that was deleted end."""
        names = self.moto.names()
        for name in set(self._groups) - set(names):
            self._ec2.terminate(list(self._groups.pop(name).members), now, EndReason.FLEET)
        for name in names:
            group = self.group(name)
            self._take_over(group)
            group.advance(self.shape(name), now, self._ec2_of(name, now))
            self.moto.show(name, group.members.values())

    def _take_over(self, group: ScalingGroup) -> None:
        """Take over changes of members that callers made through moto's own operations."""
        for instance_id, (protected, aside) in self.moto.shown(group.name).items():
            member = group.members.get(instance_id)
            if member is None:
                continue
            member.protected = protected
            if aside and member.state == GroupState.IN_SERVICE:
                member.state = GroupState.STANDBY
            elif not aside and member.state == GroupState.STANDBY:
                member.state = GroupState.IN_SERVICE

    def note(self, name: str, transition: Transition, now: datetime) -> None:
        """Note that an instance of a group has reached a state."""
        group = self._groups.get(name)
        if group is None or name not in self.moto.names():
            return
        if transition.state == InstanceState.RUNNING:
            shape = self.shape(name)
            group.running(shape, transition.instance_id, now, self._ec2_of(name, now))
        elif transition.state == InstanceState.TERMINATED or self._was_ended(group, transition):
            group.gone(transition.instance_id, now)
        self.moto.show(name, group.members.values())

    def _was_ended(self, group: ScalingGroup, transition: Transition) -> bool:
        """Return whether something other than its group ends the instance."""
        member = group.members.get(transition.instance_id)
        ending = transition.state == InstanceState.SHUTTING_DOWN
        return ending and member is not None and member.activity is None

    def end(self, instance_id: str, *, decrement: bool, now: datetime) -> tuple[str, Activity]:
        """Carry out a TerminateInstanceInAutoScalingGroup.

        Raises:
            Ec2Fault: It is in no group, or its group would fall below its minimum.
        """
        group = self.of_member(instance_id)
        self._take_over(group)
        shape = self.shape(group.name)
        counts = instance_id in {group_member.instance_id for group_member in group.counting()}
        if decrement and counts:
            if shape.desired <= shape.min_size:
                raise Ec2Fault(
                    "ValidationError",
                    f"Currently, desiredSize equals minSize ({shape.min_size}). Terminating "
                    "instance without replacement will violate group's min size constraint.",
                )
            self.moto.set_desired(group.name, shape.desired - 1)
        activity = group.end(shape, instance_id, now, self._ec2_of(group.name, now))
        self.moto.show(group.name, group.members.values())
        return group.name, activity

    def complete(self, name: str, member: GroupMember, now: datetime) -> None:
        """Take a CompleteLifecycleAction for a member that waits."""
        self.group(name).complete(member, now, self._ec2_of(name, now))

    def next_due(self, now: datetime) -> datetime | None:
        """Return the first moment after `now` at which `advance` has something to do."""
        moments = [group.next_due(now) for group in self._groups.values()]
        return min((moment for moment in moments if moment is not None), default=None)

    def _ec2_of(self, name: str, now: datetime) -> "_Ec2OfGroup":
        return _Ec2OfGroup(self._ec2, self._moto, self.moto, name, now)


class _Ec2OfGroup:
    """What a group does in EC2, at one moment; implements `state.scaling_group.Ec2`."""

    def __init__(
        self, ec2: Ec2, moto: MotoRegion, groups: MotoGroups, name: str, now: datetime
    ) -> None:
        self._ec2 = ec2
        self._moto = moto
        self._groups = groups
        self._name = name
        self._now = now

    def launch(self, pool: Pool, lifecycle: Lifecycle) -> Launched | LaunchRefusal:
        """Start one instance, or say why not."""
        tags = self._groups.tags(self._name)
        names = frozenset({self._name, tags.get("fleet", self._name)})
        got = self._ec2.start(self._name, names, tags, pool, lifecycle, self._now)
        if isinstance(got, LaunchRefusal):
            return got
        version = self._moto.tags(got.instance_id).get("aws:ec2launchtemplate:version", "1")
        return Launched(instance_id=got.instance_id, version=version)

    def terminate(self, instance_id: str) -> None:
        """Begin to end an instance."""
        self._ec2.terminate([instance_id], self._now, EndReason.FLEET)

    def announce(self, member: GroupMember) -> None:
        """Tell EventBridge that a member waits for a lifecycle action."""
        assert member.hook is not None, "it waits for a hook"
        transition = "TERMINATING" if member.hook.transition == "terminate" else "LAUNCHING"
        announcement = Announcement(
            source="aws.autoscaling",
            detail_type=f"EC2 Instance-{member.hook.transition} Lifecycle Action",
            instance_ids=[member.instance_id],
            detail={
                "LifecycleActionToken": member.token,
                "AutoScalingGroupName": self._name,
                "LifecycleHookName": member.hook.name,
                "EC2InstanceId": member.instance_id,
                "LifecycleTransition": f"autoscaling:EC2_INSTANCE_{transition}",
            },
        )
        if self._moto.has_event_rules:
            self._moto.announce(announcement, self._now)


def not_found(name: str) -> Ec2Fault:
    """Return the answer to a name that no group has."""
    what = f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found"
    return Ec2Fault("ValidationError", what)
