"""Decodes Auto Scaling groups, managed node groups included, as fleets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import msgspec

from reconciler.model.fleet import FLEET_TAG, Fleet, FleetEvent, Instance, Lifecycle
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import Ignored
from reconciler.records.aws.activities import ActivityWire
from reconciler.records.aws.fields import (
    Count,
    TagWire,
    Wire,
    is_of_cluster,
    launch_error,
    moment_of,
    read_entries,
    tags_of,
)
from reconciler.records.aws.fleets import (
    OverrideWire,
    chooses_types,
    units_not_nodes,
)
from reconciler.records.aws.group_market import DistributionWire, next_in_distribution
from reconciler.records.aws.launch_templates import LaunchTemplates, TemplateSpecificationWire
from reconciler.records.aws.node_groups import read_node_group

NODE_ROLES = frozenset({"worker", "kubernetes-minion", "minion"})
REFRESHING = frozenset({"Pending", "InProgress", "Cancelling", "RollbackInProgress", "Baking"})
"""States of an instance refresh in which Auto Scaling still replaces or watches instances. Source:
Auto Scaling API reference, InstanceRefresh, read 2026-11."""
REFRESH_UNKNOWN = "Unknown"
"""Not a state of Auto Scaling: the call was throttled."""


class GroupInstanceWire(Wire):
    """A member as describe-auto-scaling-groups lists it."""

    instance_id: str
    instance_type: str | None = None
    availability_zone: str | None = None
    lifecycle_state: str | None = None
    protected_from_scale_in: bool | None = None
    launch_template: TemplateSpecificationWire | None = None

    @property
    def leaves(self) -> bool:
        """Return whether the group is ending it; a hook may hold it in Terminating:Wait."""
        return (self.lifecycle_state or "").startswith("Terminat")

    @property
    def is_set_aside(self) -> bool:
        """Return whether the group's desired capacity does not count it, though it may run.

        Somebody has put it into standby or is detaching it, or it is in a warm pool.
        """
        state = self.lifecycle_state or ""
        return state in {"EnteringStandby", "Standby", "Detaching"} or self.is_warm

    @property
    def is_warm(self) -> bool:
        """Return whether it waits in the group's warm pool."""
        return (self.lifecycle_state or "").startswith("Warmed:")

    @property
    def is_protected(self) -> bool:
        """Return whether it is protected from scale-in."""
        return bool(self.protected_from_scale_in) or self.is_set_aside


class MemberWire(GroupInstanceWire):
    """A member as describe-auto-scaling-instances lists it."""

    auto_scaling_group_name: str = ""


def pool_keeps_running(warm_pool: Mapping[str, Any] | None) -> bool:
    """Return whether a WarmPoolConfiguration is of a pool whose instances run.

    EC2 launched these for the pool. It sets a new launch time for one that was stopped there.
    """
    return (warm_pool or {}).get("PoolState") == "Running"


class _SuspendedWire(Wire):
    process_name: str


class _RefreshWire(Wire):
    auto_scaling_group_name: str
    status: str


class _MixedTemplateWire(Wire):
    launch_template_specification: TemplateSpecificationWire | None = None
    overrides: tuple[OverrideWire, ...] | None = None


class _MixedPolicyWire(Wire):
    launch_template: _MixedTemplateWire | None = None
    instances_distribution: DistributionWire | None = None


class GroupWire(Wire):
    """One Auto Scaling group."""

    auto_scaling_group_name: str
    desired_capacity: Count
    desired_capacity_type: str | None = None
    min_size: Count = 0
    max_size: Count | None = None
    instances: tuple[GroupInstanceWire, ...] | None = None
    tags: tuple[TagWire, ...] | None = None
    status: str | None = None
    created_time: Any = None
    launch_template: TemplateSpecificationWire | None = None
    mixed_instances_policy: _MixedPolicyWire | None = None
    launch_configuration_name: str | None = None
    suspended_processes: tuple[_SuspendedWire, ...] | None = None
    warm_pool_configuration: dict[str, Any] | None = None
    capacity_rebalance: bool | None = None
    availability_zones: tuple[str, ...] | None = None
    vpc_zone_identifier: str | None = msgspec.field(name="VPCZoneIdentifier", default=None)

    @property
    def keeps_pool_running(self) -> bool:
        """Return whether it has a warm pool of instances that run."""
        return pool_keeps_running(self.warm_pool_configuration)

    @property
    def suspended(self) -> frozenset[str]:
        """Return the processes that somebody has suspended."""
        return frozenset(
            suspended_process.process_name for suspended_process in self.suspended_processes or ()
        )

    @property
    def mixed_template(self) -> "_MixedTemplateWire | None":
        """Return the launch template and its options, where the group mixes instance types."""
        return self.mixed_instances_policy.launch_template if self.mixed_instances_policy else None

    @property
    def units_not_nodes(self) -> str:
        """Return why its capacity does not count nodes; empty when it does."""
        mixed = self.mixed_template
        return units_not_nodes((mixed and mixed.overrides) or (), self.desired_capacity_type)


class _LaunchConfigurationWire(Wire):
    launch_configuration_name: str
    instance_type: str | None = None
    spot_price: str | None = None


@dataclass(slots=True)
class GroupDetails:
    """What other answers say about the groups of one region."""

    types_by_configuration: dict[str, str] = field(default_factory=dict)
    spot_configurations: set[str] = field(default_factory=set)
    """Launch configurations that state a price for spot instances, and so launch those."""
    types_by_group: dict[str, tuple[str, ...]] = field(default_factory=dict)
    node_tags_by_group: dict[str, dict[str, str]] = field(default_factory=dict)
    """Node-template tags made from a managed node group's labels and taints."""
    errors: dict[str, list[FleetEvent]] = field(default_factory=dict)
    into_service: dict[InstanceId, datetime] = field(default_factory=dict)
    """When instances were launched to serve, or left their group's warm pool to do so."""
    refreshes: dict[str, str] = field(default_factory=dict)
    """What to report about groups with an instance refresh in progress, or for which that is
    unknown."""

    def read(self, answer: Mapping[str, Any], ignored: list[Ignored]) -> None:
        """Add launch configurations, managed node groups and scaling activities."""
        for entry in read_entries(
            answer.get("LaunchConfigurations"),
            _LaunchConfigurationWire,
            "LaunchConfiguration",
            "LaunchConfigurationName",
            ignored,
        ):
            if entry.instance_type:
                self.types_by_configuration[entry.launch_configuration_name] = entry.instance_type
            if entry.spot_price:
                self.spot_configurations.add(entry.launch_configuration_name)
        if "nodegroup" in answer:
            self._read_node_group(answer["nodegroup"], ignored)
        for activity in read_entries(
            answer.get("Activities"), ActivityWire, "Activity", "ActivityId", ignored
        ):
            self._read_activity(activity, ignored)
        refreshes, id_key = answer.get("InstanceRefreshes"), "InstanceRefreshId"
        for refresh in read_entries(refreshes, _RefreshWire, "InstanceRefresh", id_key, ignored):
            if refresh.status in REFRESHING:
                text = "an instance refresh of its group is under way"
                self.refreshes[refresh.auto_scaling_group_name] = text
            elif refresh.status == REFRESH_UNKNOWN:
                text = "whether an instance refresh of its group is under way is not known"
                self.refreshes[refresh.auto_scaling_group_name] = f"{text}: AWS does not show it"

    def _read_node_group(self, found: Any, ignored: list[Ignored]) -> None:
        for group in read_node_group(found, ignored):
            self.node_tags_by_group[group.name] = group.node_tags
            if group.instance_types:
                self.types_by_group[group.name] = group.instance_types

    def _read_activity(self, wire: ActivityWire, ignored: list[Ignored]) -> None:
        """Add failed launches, and instances that went into service.

        A failed termination says nothing about capacity.
        """
        failed, described = wire.status_code == "Failed", wire.description or ""
        instance = wire.into_service
        if instance is None and (not failed or described.startswith("Terminating")):
            return
        message = wire.status_message or ""
        try:
            at = moment_of(wire.start_time)
        except (ValueError, OverflowError):
            at = None
        if at is None:
            name = wire.auto_scaling_group_name
            ignored.append(Ignored(code="unreadable", kind="Activity", name=name))
            return
        if instance is not None:
            self.into_service[instance] = max(at, self.into_service.get(instance, at))
            return
        event = launch_error(at, "", message)
        self.errors.setdefault(wire.auto_scaling_group_name, []).append(event)


def with_memberships(
    instances: Iterable[Instance], answers: Iterable[Mapping[str, Any]]
) -> list[Instance]:
    """Return the instances with what describe-auto-scaling-instances says: leaving or protected."""
    members = {
        wire.instance_id: wire
        for answer in answers
        for wire in read_entries(
            answer.get("AutoScalingInstances"), MemberWire, "AutoScalingInstance", "InstanceId", []
        )
    }
    return [_with_membership(instance, members.get(instance.id)) for instance in instances]


def _with_membership(instance: Instance, wire: MemberWire | None) -> Instance:
    if wire is None or not wire.auto_scaling_group_name:
        return instance
    group = FleetId(wire.auto_scaling_group_name)
    return replace(
        instance,
        fleet_id=group,
        protected=wire.is_protected,
        set_aside=wire.is_set_aside,
        leaving=wire.leaves,
    )


def is_ours(name: str, tags: Mapping[str, str], cluster: str, named: frozenset[str]) -> bool:
    """Return whether a group belongs to the cluster: by the config or by its tags."""
    if name in named or (FLEET_TAG in tags and is_of_cluster(tags, cluster)):
        return True
    autoscaler = "k8s.io/cluster-autoscaler"
    if f"{autoscaler}/enabled" in tags and f"{autoscaler}/{cluster}" in tags:
        return True
    roles = {tags.get("KubernetesRole"), tags.get("Role")}
    return tags.get("KubernetesCluster") == cluster and bool(roles & NODE_ROLES)


def read_groups(answer: Mapping[str, Any], ignored: list[Ignored]) -> Iterable[GroupWire]:
    """Yield the groups of a describe-auto-scaling-groups answer, foreign ones included."""
    return read_entries(
        answer.get("AutoScalingGroups"),
        GroupWire,
        "AutoScalingGroup",
        "AutoScalingGroupName",
        ignored,
    )


def group_as_fleet(
    wire: GroupWire, region: Region, templates: LaunchTemplates, details: GroupDetails
) -> Fleet:
    """Return a group as a fleet; raise ValueError when its creation time cannot be read.

    Its name is the `fleet` tag, or the group's own name for groups that are only discovered.
    """
    name = wire.auto_scaling_group_name
    own_tags = tags_of(wire.tags)
    tags: Labels = FrozenMap({**details.node_tags_by_group.get(name, {}), **own_tags})
    specification, types = _launches(wire, templates, details)
    return Fleet(
        id=FleetId(name),
        name=tags.get(FLEET_TAG, name),
        provider="asg",
        region=region,
        state="deleting" if wire.status else "active",
        target_capacity=wire.desired_capacity,
        fulfilled_capacity=float(
            sum(instance.lifecycle_state == "InService" for instance in wire.instances or ())
        ),
        created_at=moment_of(wire.created_time),
        tags=tags,
        launch_template_id=templates.id_of(specification) if specification else "",
        launch_template_version=templates.version_of(specification) if specification else "",
        further_templates=templates.further((specification, *_own_templates(wire))),
        instance_types=types,
        subnet_ids=tuple(filter(None, (wire.vpc_zone_identifier or "").split(","))),
        zones=wire.availability_zones or (),
        lifecycle=_next_lifecycle(wire, templates, details),
        min_size=wire.min_size,
        max_size=wire.max_size,
        counts_units=bool(wire.units_not_nodes),
        launches_halted=_launches_halted(wire),
        removals_halted=_removals_halted(wire, details),
        rebalances_zones=_rebalances_zones(wire),
        rebalances_capacity=bool(wire.capacity_rebalance),
    )


def _next_lifecycle(
    wire: GroupWire, templates: LaunchTemplates, details: GroupDetails
) -> Lifecycle | None:
    """Return what its next instance will be; None if the answers do not say."""
    policy = wire.mixed_instances_policy
    if policy is not None:
        shares = policy.instances_distribution or DistributionWire()
        return next_in_distribution(shares, wire.desired_capacity)
    specification = wire.launch_template
    if specification is not None and templates.is_spot(specification):
        return "spot"
    return "spot" if wire.launch_configuration_name in details.spot_configurations else None


def _launches_halted(wire: GroupWire) -> str:
    if wire.units_not_nodes:
        return wire.units_not_nodes
    return "its process Launch is suspended" if "Launch" in wire.suspended else ""


def _removals_halted(wire: GroupWire, details: GroupDetails) -> str:
    if wire.units_not_nodes:
        return wire.units_not_nodes
    if wire.auto_scaling_group_name in details.refreshes:
        return details.refreshes[wire.auto_scaling_group_name]
    return "its group's process Terminate is suspended" if "Terminate" in wire.suspended else ""


def _rebalances_zones(wire: GroupWire) -> bool:
    """Return whether its process AZRebalance is active and has several zones to balance."""
    return len(wire.availability_zones or ()) > 1 and "AZRebalance" not in wire.suspended


def _own_templates(wire: GroupWire) -> Iterable[TemplateSpecificationWire | None]:
    """Return the launch templates that options of a group have of their own."""
    mixed = wire.mixed_template
    return [
        override_wire.launch_template_specification
        for override_wire in (mixed and mixed.overrides) or ()
    ]


def _launches(
    wire: GroupWire, templates: LaunchTemplates, details: GroupDetails
) -> tuple[TemplateSpecificationWire | None, tuple[str, ...]]:
    """Return the launch template of a group, and the instance types that it may launch."""
    mixed = wire.mixed_template
    specification = mixed.launch_template_specification if mixed else wire.launch_template
    options = (mixed.overrides if mixed else None) or ()
    if chooses_types(options):
        return specification, ()
    types = [option.instance_type for option in options]
    if not any(types):
        types = list(details.types_by_group.get(wire.auto_scaling_group_name, ()))
    if not types and specification:
        types = [templates.instance_type_of(specification)]
    if not any(types) and wire.launch_configuration_name:
        types = [details.types_by_configuration.get(wire.launch_configuration_name)]
    return specification, tuple(dict.fromkeys(each for each in types if each))
