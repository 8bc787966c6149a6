"""The Cloud port over EC2 Auto Scaling groups, managed node groups included."""

import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.ec2_fleet import wall_clock
from reconciler.adapters.aws.errors import translated
from reconciler.adapters.aws.group_cache import CachedGroups, Group
from reconciler.adapters.aws.group_details import GroupDetails
from reconciler.adapters.aws.groups_reader import Caches, GroupsReader
from reconciler.adapters.aws.raised_capacities import RaisedCapacities
from reconciler.adapters.aws.regions import RegionReaders, observed, raw_answers
from reconciler.adapters.aws.retries import change
from reconciler.model.errors import Conflict, NotFound, Refused, Unavailable
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import CloudState
from reconciler.ports.cloud import lowered_target
from reconciler.records.aws import Answer, decode_cloud, decode_instances, with_memberships


class AutoScalingCloud:
    """Auto Scaling groups of one cluster.

    Rights: autoscaling:DescribeAutoScalingGroups, DescribeAutoScalingInstances,
    DescribeScalingActivities, SetDesiredCapacity, TerminateInstanceInAutoScalingGroup,
    ec2:DescribeInstances; and, without which less is known, autoscaling:DescribeInstanceRefreshes,
    DescribeLaunchConfigurations, ec2:DescribeLaunchTemplates, DescribeLaunchTemplateVersions,
    eks:DescribeNodegroup.

    Args:
        cluster: The cluster's name in the tags of groups.
        named: Returns the groups that are ours regardless of their tags.
        clients: boto3 clients.
        now: The wall clock.
        awake_seconds: A clock that never jumps, and also runs while the machine is suspended, so
            that older knowledge expires.
    """

    def __init__(
        self,
        cluster: str,
        named: Callable[[], frozenset[str]],
        clients: Clients | None = None,
        now: Callable[[], datetime] = wall_clock,
        awake_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._named = named
        self._clients = clients if clients is not None else Clients()
        self._now = now
        self._regions = RegionReaders(self._answers)
        self._groups = CachedGroups(awake_seconds)
        self._raised = RaisedCapacities(awake_seconds)
        self._caches = Caches(details=GroupDetails(now, awake_seconds))

    def observe(self, regions: Sequence[Region]) -> CloudState:
        """See ports.cloud; a slow region is given a limited time once another has answered.

        Raises:
            PortError: No region answered; the first one's error.
        """
        return observed(self._regions, regions, self._decoded, self._clients.server_time, "asg")

    def raw(self, regions: Sequence[Region]) -> dict[Region, list[Answer]]:
        """Return the answers themselves, per region; a region's error is raised."""
        return raw_answers(self._answers, regions)

    def _answers(self, region: Region) -> list[Answer]:
        reader = self._reader(region)
        with translated(f"Auto Scaling groups of {region}", changing=False):
            return reader.answers(self._groups.read(region, reader))

    def _decoded(self, answers: Sequence[tuple[Region, Answer]]) -> CloudState:
        return decode_cloud(answers, cluster=self._cluster, groups=self._named(), asked=True)

    def fleet(self, region: Region, fleet_id: FleetId) -> Fleet:
        """Return one group, read now; NotFound when it is gone or not ours."""
        reader = self._reader(region)
        answers: list[Answer] = [{"AutoScalingGroups": [self._group(region, fleet_id)]}]
        answers += reader.refreshes_of(fleet_id)
        state = self._decoded([(region, answer) for answer in answers])
        if not state.fleets:
            what = "is described in a form that is not known"
            raise Unavailable(f"Auto Scaling group {fleet_id}", what)
        return state.fleets[0]

    def fleet_state(self, region: Region, fleet_id: FleetId) -> str:
        """See ports.cloud; a group that is not ours is not found."""
        return self.fleet(region, fleet_id).state

    def _group(self, region: Region, fleet_id: FleetId) -> Group:
        """Return one group's entry; NotFound when it is gone or not ours."""
        where = f"Auto Scaling group {fleet_id}"
        with translated(where, changing=False):
            found = self._reader(region).named([fleet_id])
        if not found:
            raise NotFound(where, f"is not a group of {self._cluster} in {region}")
        return found[0]

    def set_target_capacity(self, region: Region, fleet_id: FleetId, capacity: int) -> None:
        """Raise the group's desired capacity.

        Raises:
            Refused: The capacity would be lowered, and the group would end instances of its own
                choice.
            NotFound: The group is gone.
            Conflict: The group is busy; try again after a pause.
        """
        group = self._group(region, fleet_id)
        with translated(f"Auto Scaling group {fleet_id}", changing=False):
            desired = int(group["DesiredCapacity"])
        desired = max(desired, self._raised.latest(region, fleet_id))
        if capacity < desired:
            what = f"is not lowered from {desired} to {capacity}: it would choose what it ends"
            raise Refused(f"Auto Scaling group {fleet_id}", what)
        self._groups.changed(region, fleet_id)
        change(
            f"Auto Scaling group {fleet_id}",
            self._clients.autoscaling(region, changing=True).set_desired_capacity,
            self._clients.attempts,
            AutoScalingGroupName=fleet_id,
            DesiredCapacity=capacity,
            HonorCooldown=False,
        )
        self._raised.accepted(region, fleet_id, capacity)

    def instances(self, region: Region, ids: Sequence[InstanceId]) -> tuple[Instance, ...]:
        """Return those of the instances that EC2 still lists, read now."""
        if not ids:
            return ()
        answers = self._reader(region).instances(ids)
        found = {
            instance.id: instance
            for answer in answers
            for instance in decode_instances(answer, region)
        }
        return tuple(with_memberships((found[key] for key in sorted(found)), answers))

    def terminate(
        self,
        region: Region,
        fleet_id: FleetId,
        ids: Sequence[InstanceId],
        *,
        lower_target: bool,
        expected_target: int | None = None,
    ) -> int | None:
        """See ports.cloud; each call ends one instance, with or without lowering the capacity.

        Raises:
            Conflict: An instance refresh is in progress; nothing was changed.
        """
        if not lower_target and not any(e.counts for e in self.instances(region, ids)):
            return None
        live = self.fleet(region, fleet_id)
        if lower_target:
            lowered_target(live, ids, expected_target)
        if live.removals_halted:
            raise Conflict(f"Auto Scaling group {fleet_id}", live.removals_halted)
        ended = 0
        for member in self._members(region, fleet_id, ids):
            self._groups.changed(region, fleet_id)
            if self._end(region, member, lower_target=lower_target):
                ended += 1
                if lower_target:
                    self._raised.lowered(region, fleet_id)
        return live.target_capacity - ended if lower_target else None

    def _members(
        self, region: Region, fleet_id: FleetId, ids: Sequence[InstanceId]
    ) -> list[InstanceId]:
        """Return those of the instances that are in the group and that it is not ending already."""
        instances = self.instances(region, ids)
        return [
            instance.id
            for instance in instances
            if instance.fleet_id == fleet_id and instance.counts
        ]

    def _end(self, region: Region, instance: InstanceId, *, lower_target: bool) -> bool:
        """End one instance; return whether it still existed."""
        try:
            change(
                f"instance {instance}",
                self._clients.autoscaling(
                    region, changing=True
                ).terminate_instance_in_auto_scaling_group,
                self._clients.attempts,
                InstanceId=instance,
                ShouldDecrementDesiredCapacity=lower_target,
            )
        except NotFound:
            return False
        return True

    def expect_end(self, ids: Collection[InstanceId]) -> bool:
        """Read these instances again in each observation of the next minute: they are to end.

        Returns:
            Whether at least one of them is an instance that was observed.
        """
        return self._groups.expect_end(frozenset(ids))

    def close(self) -> None:
        """Close all connections."""
        self._groups.close()
        self._clients.close()

    def _reader(self, region: Region) -> GroupsReader:
        named = self._named()
        return GroupsReader(
            self._clients,
            region,
            self._cluster,
            named,
            self._now,
            self._caches,
        )
