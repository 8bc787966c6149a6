"""Reads one region's answers about our Auto Scaling groups, raw as boto3 returns them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.errors import translated
from reconciler.adapters.aws.fleets_reader import HISTORY_AGE, IDS_MAX
from reconciler.adapters.aws.group_cache import Group, GroupAnswers, Reservations
from reconciler.adapters.aws.group_details import GroupDetails
from reconciler.adapters.aws.paging import chunks, entries, listed
from reconciler.adapters.aws.rotating_reads import RotatingReads
from reconciler.adapters.aws.service_times import GROUPS_PER_READ, ServiceTimes
from reconciler.model.errors import Forbidden, NotFound, Refused, Throttled, Unavailable
from reconciler.model.ids import Region
from reconciler.records.aws import REFRESH_UNKNOWN, REFRESHING, Answer, into_service, is_ours

PAGE_GROUPS: Final = 100
"""The limit of groups per answer, and of names per question. Source: Auto Scaling API reference,
DescribeAutoScalingGroups, read 2026-11."""
PAGE_INSTANCES: Final = 1000
MEMBERS_MAX: Final = 50
"""The limit of ids of one DescribeAutoScalingInstances."""
ACTIVITIES: Final = 50
"""How many of a group's newest activities are read: enough to see why it does not grow."""
TROUBLED_MAX: Final = 10
"""The limit of groups whose activities are read one by one; with more, the region's are read."""
ACTIVITY_PAGES_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """The caches that are kept from one read of groups to the next."""

    details: GroupDetails
    """Templates and node groups."""
    refreshes: RotatingReads = field(default_factory=RotatingReads)
    """Instance refreshes."""
    service_times: ServiceTimes = field(default_factory=ServiceTimes)


class GroupsReader:
    """Reads one region: groups, their instances, and activities where these are needed.

    Args:
        clients: boto3 clients.
        region: The region.
        cluster: The cluster's name in tags.
        named: Groups that are ours regardless of their tags.
        now: The wall clock.
        caches: What earlier reads have found.
    """

    def __init__(
        self,
        clients: Clients,
        region: Region,
        cluster: str,
        named: frozenset[str],
        now: Callable[[], datetime],
        caches: Caches,
    ) -> None:
        self._clients = clients
        self._region = region
        self._cluster = cluster
        self._named = named
        self._now = now
        self._details = caches.details
        self._refreshes = caches.refreshes
        self._service_times = caches.service_times

    def all(self) -> GroupAnswers:
        """Return all our groups and their instances."""
        groups = {each["AutoScalingGroupName"]: each for each in self._tagged()}
        for each in self.named(sorted(self._named - groups.keys())):
            groups[each["AutoScalingGroupName"]] = each
        return GroupAnswers(groups=groups, reservations=self.instances_of(sorted(groups)))

    def some(self, names: Sequence[str]) -> GroupAnswers:
        """Return those of the groups that still exist, and their instances."""
        groups = {each["AutoScalingGroupName"]: each for each in self.named(names)}
        return GroupAnswers(groups=groups, reservations=self.instances_of(names))

    def named(self, names: Sequence[str]) -> list[Group]:
        """Return those of the groups that are ours."""
        found: list[Group] = []
        for chunk in chunks(names, PAGE_GROUPS):
            found += self._groups({"AutoScalingGroupNames": chunk})
        return [each for each in found if self._is_ours(each)]

    def _tagged(self) -> list[Group]:
        """Return groups with a tag that may make them ours; values are compared afterwards."""
        keys = [
            "cluster",
            f"kubernetes.io/cluster/{self._cluster}",
            f"k8s.io/cluster-autoscaler/{self._cluster}",
            "KubernetesCluster",
        ]
        found = self._groups({"Filters": [{"Name": "tag-key", "Values": keys}]})
        return [each for each in found if self._is_ours(each)]

    def _is_ours(self, group: Group) -> bool:
        tags = {tag["Key"]: tag.get("Value", "") for tag in group.get("Tags", ())}
        return is_ours(group["AutoScalingGroupName"], tags, self._cluster, self._named)

    def instances_of(self, names: Sequence[str]) -> Reservations:
        """Return the instances that EC2 lists for these groups."""
        found: Reservations = []
        for chunk in chunks(names, IDS_MAX):
            wanted = [{"Name": "tag:aws:autoscaling:groupName", "Values": chunk}]
            found += self._reservations(wanted)
        return found

    def instances(self, ids: Sequence[str]) -> list[Answer]:
        """Return the instances of these ids, and their groups' view of them."""
        ids = sorted(set(ids))
        found: list[Answer] = []
        for chunk in chunks(ids, IDS_MAX):
            wanted = [{"Name": "instance-id", "Values": chunk}]
            found.append({"Reservations": self._reservations(wanted)})
        for chunk in chunks(ids, MEMBERS_MAX):
            with translated("describe_auto_scaling_instances", changing=False):
                answer: Any = self._auto_scaling.describe_auto_scaling_instances(InstanceIds=chunk)
                found.append({"AutoScalingInstances": listed(answer, "AutoScalingInstances")})
        return found

    def answers(self, known: GroupAnswers) -> list[Answer]:
        """Return what is known as answers, with the details of these groups that planning needs."""
        groups = list(known.groups.values())
        found: list[Answer] = [
            {"AutoScalingGroups": groups},
            {"Reservations": known.reservations},
        ]
        found += self._details.answers(self._clients, self._region, groups)
        found += self._activities_known(groups)
        found += self._refreshes_known(groups)
        return found

    def _activities_known(self, groups: Sequence[Group]) -> Iterator[Answer]:
        """Yield why groups are short, and since when members are in service."""
        calls_max = GROUPS_PER_READ
        try:
            yield from self._activities(
                [group["AutoScalingGroupName"] for group in groups if _is_short(group)]
            )
        except Unavailable:
            calls_max = 0  # the next call would take as long
        at = self._clients.server_time() or self._now()
        yield self._service_times.answer(
            self._region, groups, self._taken_into_service, at, calls_max=calls_max
        )

    def _taken_into_service(
        self, name: str, wanted: Collection[str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield these members with the newest activity by which the group took each into service.

        Pages are read until all are found.
        """
        left = set(wanted)
        arguments = {"AutoScalingGroupName": name}
        with translated("describe_scaling_activities", changing=False):
            for _ in range(ACTIVITY_PAGES_MAX):
                page: Any = self._auto_scaling.describe_scaling_activities(
                    MaxRecords=PAGE_GROUPS, **arguments
                )
                for activity in listed(page, "Activities"):
                    instance = into_service(activity)
                    if instance is not None and instance in left:
                        left.remove(instance)
                        yield instance, activity
                if not left or not page.get("NextToken"):
                    break
                arguments["NextToken"] = page["NextToken"]

    def _activities(self, names: Sequence[str]) -> Iterator[Answer]:
        """Yield the last hour's activities of these groups."""
        asked = [[name] for name in names] if len(names) <= TROUBLED_MAX else [[]]
        for some in asked:
            try:
                yield {"Activities": self._activities_of(some)}
            except (NotFound, Throttled, Forbidden, Refused):
                continue  # the group is gone, will be read again soon, or may not be read

    def _activities_of(self, names: Sequence[str]) -> list[dict[str, Any]]:
        arguments: dict[str, Any] = {"AutoScalingGroupName": names[0]} if names else {}
        since = self._now() - HISTORY_AGE
        found: list[dict[str, Any]] = []
        with translated("describe_scaling_activities", changing=False):
            for _ in range(1 if names else ACTIVITY_PAGES_MAX):
                page: Any = self._auto_scaling.describe_scaling_activities(
                    MaxRecords=ACTIVITIES if names else PAGE_GROUPS, **arguments
                )
                newest = listed(page, "Activities")
                recent = [each for each in newest if each["StartTime"] >= since]
                found += recent
                if not page.get("NextToken") or len(recent) < len(newest):
                    break
                arguments["NextToken"] = page["NextToken"]
        return found

    def _refreshes_known(self, groups: Iterable[Group]) -> Iterator[Answer]:
        """Yield refreshes of groups that seem to have one, as there is no list of all refreshes.

        While a new instance warms up a group looks as if nothing were under way: one that had a
        refresh in the last answer, or about which AWS gave none, is asked about until it has none.
        """
        seen = self._refreshes.known(self._region)
        again = {name for name, answers in seen.items() if _is_under_way(answers)}
        again |= self._refreshes.unanswered(self._region)
        names = {group["AutoScalingGroupName"]: group for group in groups}
        asked = [n for n, each in names.items() if n in again or _may_be_refreshed(each)]
        known = self._refreshes.read(self._region, asked, self._newest_refresh)
        for name in asked:
            yield from known.get(name, [_unknown_refresh(name)])

    def refreshes_of(self, name: str) -> list[Answer]:
        """Return the newest instance refresh of a group, read now; none without the right to it.

        While Auto Scaling throttles or does not answer, it is unknown whether one is in progress.
        """
        try:
            return self._newest_refresh(name)
        except (Throttled, Unavailable):
            return [_unknown_refresh(name)]

    def _newest_refresh(self, name: str) -> list[Answer]:
        try:
            with translated("describe_instance_refreshes", changing=False):
                page: Any = self._auto_scaling.describe_instance_refreshes(
                    AutoScalingGroupName=name, MaxRecords=1
                )
                found = listed(page, "InstanceRefreshes")
        except (NotFound, Forbidden, Refused):
            return []
        return [{"InstanceRefreshes": found}]

    def _groups(self, arguments: Mapping[str, Any]) -> list[Group]:
        paged = {**arguments, "PaginationConfig": {"PageSize": PAGE_GROUPS}}
        operation = "describe_auto_scaling_groups"
        return [*entries(self._auto_scaling, operation, "AutoScalingGroups", paged)]

    def _reservations(self, filters: Sequence[Mapping[str, Any]]) -> Reservations:
        paged = {"Filters": [*filters], "PaginationConfig": {"PageSize": PAGE_INSTANCES}}
        ec2 = self._clients.ec2(self._region)
        return [*entries(ec2, "describe_instances", "Reservations", paged)]

    @property
    def _auto_scaling(self) -> Any:
        return self._clients.autoscaling(self._region)


def _unknown_refresh(name: str) -> Answer:
    """Return the answer for a group for which it is unknown whether it has an instance refresh."""
    return {"InstanceRefreshes": [{"AutoScalingGroupName": name, "Status": REFRESH_UNKNOWN}]}


def _is_short(group: Group) -> bool:
    """Return whether the group has fewer instances than it should have."""
    states = [instance.get("LifecycleState") for instance in group.get("Instances", ())]
    desired: int = group.get("DesiredCapacity", 0)
    return states.count("InService") < desired


def _is_under_way(answers: Iterable[Answer]) -> bool:
    """Return whether a refresh has not ended yet."""
    refreshes = (
        instance_refresh for answer in answers for instance_refresh in answer["InstanceRefreshes"]
    )
    return any(refresh.get("Status") in REFRESHING for refresh in refreshes)


def _may_be_refreshed(group: Group) -> bool:
    """Return whether instances launch or end, or have different launch templates."""
    instances = group.get("Instances", ())
    moving = any(
        instance.get("LifecycleState") not in {"InService", "Standby"} for instance in instances
    )
    return moving or len(set(map(_launched_from, instances))) > 1


def _launched_from(instance: Mapping[str, Any]) -> tuple[object, ...]:
    """Return its launch template with the version, and its launch configuration."""
    template = instance.get("LaunchTemplate") or {}
    ids = template.get("LaunchTemplateId"), template.get("Version")
    return (*ids, instance.get("LaunchConfigurationName"))
