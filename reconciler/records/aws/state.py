"""Decodes answers of AWS into a CloudState; the CLI's files and boto3 have the same form."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.model.fleet import Fleet, Instance
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import CloudState, Ignored
from reconciler.records.aws.fields import is_of_cluster
from reconciler.records.aws.fleets import (
    History,
    living_ids,
    read_fleets,
    read_history,
    with_history,
)
from reconciler.records.aws.groups import (
    GroupDetails,
    GroupWire,
    group_as_fleet,
    is_ours,
    read_groups,
)
from reconciler.records.aws.instances import read_active, read_instances
from reconciler.records.aws.launch_templates import LaunchTemplates
from reconciler.records.reasons import reason_of

Answer = Mapping[str, Any]

ANSWER_KEYS = frozenset(
    {
        "Fleets",
        "ActiveInstances",
        "HistoryRecords",
        "Reservations",
        "AutoScalingGroups",
        "LaunchTemplates",
        "LaunchTemplateVersions",
        "LaunchConfigurations",
        "nodegroup",
        "Activities",
        "AutoScalingInstances",
        "InstanceRefreshes",
        "SpotPriceHistory",
        "Subnets",
    }
)
"""The keys by which an answer is known for one that planning or adopting uses."""
ASKED = "InstancesAsked"
"""True next to `Region` in a snapshot's file: AWS was asked for all instances of the region."""


def decode_cloud(
    answers: Iterable[tuple[Region, Answer]],
    *,
    cluster: str,
    groups: frozenset[str] = frozenset(),
    asked: bool = False,
) -> CloudState:
    """Decode answers into one state with our fleets and instances only.

    Args:
        answers: Each answer with the region it is from; the same entry twice counts once.
        cluster: The name that tags of fleets, groups and instances carry.
        groups: Auto Scaling groups that are ours whatever their tags say.
        asked: Whether AWS was asked for all of it just now, not only for what somebody put into
            files: that it shows no instance is an answer then, unless fleets hold some. Files of
            `reconciler snapshot` say so themselves.
    """
    by_region: dict[Region, list[Answer]] = {}
    for region, answer in answers:
        by_region.setdefault(region, []).append(answer)
    asked = asked or _say_that_aws_was_asked(by_region)
    ignored: list[Ignored] = []
    parts = [
        _RegionState(region, cluster, groups, ignored).read(found)
        for region, found in sorted(by_region.items())
    ]
    return CloudState(
        fleets=tuple(fleet for part in parts for fleet in part.ordered_fleets()),
        other_fleets=frozenset(each for part in parts for each in part.living - set(part.fleets)),
        instances=tuple(
            ordered_instance for part in parts for ordered_instance in part.ordered_instances()
        ),
        regions=frozenset(by_region),
        ignored=tuple(sorted(ignored)),
        instances_known=any(part.instances_seen for part in parts)
        or (asked and _hold_nothing(parts)),
        instances_asked=asked,
    )


def _say_that_aws_was_asked(by_region: Mapping[Region, Sequence[Answer]]) -> bool:
    """Return whether the answers of every Region are a snapshot's, which leaves no instance out."""
    return bool(by_region) and all(
        any(answer.get(ASKED) is True for answer in answers) for answers in by_region.values()
    )


def _hold_nothing(parts: Sequence["_RegionState"]) -> bool:
    """Return whether fleets are shown and none has an instance: an empty list is plausible."""
    fleets = [fleet for part in parts for fleet in part.fleets.values()]
    return bool(fleets) and not any(fleet.fulfilled_capacity for fleet in fleets)


@dataclass(slots=True)
class _RegionState:
    """The sum of the answers of one region."""

    region: Region
    cluster: str
    groups: frozenset[str]
    ignored: list[Ignored]
    fleets: dict[FleetId, Fleet] = field(default_factory=dict)
    living: set[FleetId] = field(default_factory=set)
    """EC2 Fleets of every type and owner."""
    instances: dict[InstanceId, Instance] = field(default_factory=dict)
    instances_seen: bool = False
    """An empty list of instances proves nothing: it must not make nodes look gone."""

    def read(self, answers: list[Answer]) -> "_RegionState":
        """Read instances and details first, then fleets, then which instances belong to them."""
        templates, details = LaunchTemplates(), GroupDetails()
        for answer in answers:
            templates.read(answer, self.ignored)
            details.read(answer, self.ignored)
            for instance in read_instances(answer, self.region, self.ignored):
                self.instances_seen = True
                self.instances[instance.id] = instance
        templates.forget_outdated(self.instances.values(), self.ignored)
        groups: list[GroupWire] = []
        for answer in answers:
            for fleet in read_fleets(answer, self.region, self.cluster, templates, self.ignored):
                self.fleets[fleet.id] = fleet
            self.living.update(living_ids(answer))
            groups.extend(
                group
                for group in read_groups(answer, self.ignored)
                if self._add_group(group, templates, details)
            )
        self._read_errors(answers, details)
        for answer in answers:
            self._join_fleet_members(answer)
        for group in groups:
            self._join_group_members(group, details)
        self._drop_foreign()
        return self

    def _add_group(
        self, group: GroupWire, templates: LaunchTemplates, details: GroupDetails
    ) -> bool:
        name = group.auto_scaling_group_name
        tags = {tag.key: tag.value or "" for tag in group.tags or ()}
        if not is_ours(name, tags, self.cluster, self.groups):
            return False
        try:
            self.fleets[FleetId(name)] = group_as_fleet(group, self.region, templates, details)
        except (ValueError, OverflowError) as error:
            why, kind = reason_of(error), "AutoScalingGroup"
            self.ignored.append(Ignored(code="unreadable", kind=kind, name=name, detail=why))
            return False
        return True

    def _read_errors(self, answers: list[Answer], details: GroupDetails) -> None:
        histories = {key: History(errors=list(errors)) for key, errors in details.errors.items()}
        for answer in answers:
            if "HistoryRecords" in answer:
                fleet_id = answer.get("FleetId")
                known = histories.setdefault(
                    fleet_id if isinstance(fleet_id, str) else "", History()
                )
                known.add(read_history(answer, self.ignored))
        for fleet_id, fleet in self.fleets.items():
            self.fleets[fleet_id] = with_history(fleet, histories.get(fleet_id, History()))

    def _join_fleet_members(self, answer: Answer) -> None:
        """Add membership by describe-fleet-instances, which may be all that is known."""
        fleet_id = answer.get("FleetId")
        if "ActiveInstances" not in answer or not isinstance(fleet_id, str):
            return
        for wire in read_active(answer, self.ignored):
            self._join(
                Instance(
                    id=InstanceId(wire.instance_id),
                    region=self.region,
                    fleet_id=FleetId(fleet_id),
                    state="running",
                    instance_type=wire.instance_type or "",
                    zone="",
                    launched_at=None,
                    lifecycle="spot" if wire.spot_instance_request_id else "on-demand",
                )
            )

    def _join_group_members(self, group: GroupWire, details: GroupDetails) -> None:
        fleet_id = FleetId(group.auto_scaling_group_name)
        members = [instance for instance in group.instances or () if not instance.is_warm]
        self._set_warm_pool_aside(group, {member.instance_id for member in members})
        for wire in members:
            if group.keeps_pool_running and wire.instance_id not in details.into_service:
                self._forget_launch(InstanceId(wire.instance_id))
            self._join(
                Instance(
                    id=InstanceId(wire.instance_id),
                    region=self.region,
                    fleet_id=fleet_id,
                    state="pending" if (wire.lifecycle_state or "") == "Pending" else "running",
                    instance_type=wire.instance_type or "",
                    zone=wire.availability_zone or "",
                    launched_at=details.into_service.get(InstanceId(wire.instance_id)),
                    protected=wire.is_protected,
                    set_aside=wire.is_set_aside,
                    leaving=wire.leaves,
                )
            )

    def _set_warm_pool_aside(self, group: GroupWire, members: set[str]) -> None:
        """Count nothing that a warm pool holds ready: where there is one, what is no listed member.

        What is listed as warm is set aside also if the answer does not show the pool. An instance
        that runs there may still be a node.
        """
        fleet_id = FleetId(group.auto_scaling_group_name)
        aside = {
            group_instance_wire.instance_id
            for group_instance_wire in group.instances or ()
            if group_instance_wire.is_warm
        }
        if group.warm_pool_configuration is not None:
            of_group = {each.id for each in self.instances.values() if each.fleet_id == fleet_id}
            aside |= of_group - members
        for instance in map(InstanceId, aside & self.instances.keys()):
            found = replace(
                self.instances[instance], fleet_id=fleet_id, protected=True, set_aside=True
            )
            self.instances[instance] = found

    def _forget_launch(self, instance: InstanceId) -> None:
        """Remove a member's launch time, because it may have left the warm pool a moment ago."""
        known = self.instances.get(instance)
        if known is not None:
            self.instances[instance] = replace(known, launched_at=None)

    def _join(self, member: Instance) -> None:
        """Add a member, or its membership to what describe-instances says of it."""
        known = self.instances.get(member.id)
        if known is not None:
            member = replace(
                known,
                fleet_id=member.fleet_id,
                launched_at=max(
                    filter(None, (known.launched_at, member.launched_at)), default=None
                ),
                protected=known.protected or member.protected,
                set_aside=known.set_aside or member.set_aside,
                leaving=known.leaving or member.leaving,
            )
        self.instances[member.id] = member

    def _drop_foreign(self) -> None:
        """Keep members of our fleets, and instances with the cluster's tag."""
        for instance in list(self.instances.values()):
            ours = instance.fleet_id in self.fleets or is_of_cluster(instance.tags, self.cluster)
            if not ours:
                del self.instances[instance.id]

    def ordered_fleets(self) -> list[Fleet]:
        """Return the fleets by name, then id."""
        return sorted(self.fleets.values(), key=lambda each: (each.name, each.id))

    def ordered_instances(self) -> list[Instance]:
        """Return the instances by id."""
        return sorted(self.instances.values(), key=lambda each: each.id)
