"""Auto Scaling groups in moto: the owner's settings, and the members that it shows.

Moto launches and ends at once, without activities, hooks or failures. Here it only stores groups;
`scaling_group` decides what happens. Untyped, as moto is.
"""

import inspect
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup, autoscaling_backends

from reconciler.sandbox.aws.errors import Ec2Fault
from reconciler.sandbox.aws.moto_server.surface import MotoRegion
from reconciler.sandbox.aws.state.scaling_group import GroupMember, GroupShape, Hook, Transition
from reconciler.sandbox.aws.values import LaunchTemplateRef, Pool

GROUP_TAG = "aws:autoscaling:groupName"
_TRANSITIONS: Mapping[str, Transition] = {
    "autoscaling:EC2_INSTANCE_LAUNCHING": "launch",
    "autoscaling:EC2_INSTANCE_TERMINATING": "terminate",
}


_update_as_moto_does: Any = FakeAutoScalingGroup.update


def let_groups_rest() -> None:
    """Keep moto from launching and ending instances of groups itself."""
    group: Any = FakeAutoScalingGroup
    group.update = _update_what_is_stated
    group.set_desired_capacity = _only_note_desired
    group.replace_autoscaling_group_instances = _do_nothing
    backend: Any = AutoScalingBackend
    backend.notify_terminate_instances = _do_nothing


def _only_note_desired(group: Any, new_capacity: int | None) -> None:
    group.desired_capacity = group.min_size if new_capacity is None else new_capacity


def _update_what_is_stated(group: Any, *arguments: Any, **named: Any) -> None:
    """Update a group; moto drops a mixed instances policy that the call does not mention."""
    bound = inspect.signature(_update_as_moto_does).bind(group, *arguments, **named)
    given = bound.arguments
    launches = ("launch_config_name", "launch_template", "mixed_instances_policy")
    kept = None if any(given.get(key) for key in launches) else group.mixed_instances_policy
    _update_as_moto_does(*bound.args, **bound.kwargs)
    if kept is not None:
        group.mixed_instances_policy = kept


def _do_nothing(*_arguments: Any) -> None:
    """Do nothing: the state machine acts."""


class _ShownMember:
    """A member with the names of DescribeAutoScalingGroups and DescribeAutoScalingInstances."""

    def __init__(self, group: Any, member: GroupMember) -> None:
        self.instance = SimpleNamespace(id=member.instance_id, autoscaling_group=group)
        self.instance_id = member.instance_id
        self.instance_type = member.pool.instance_type
        self.availability_zone = member.pool.zone
        self.lifecycle_state = str(member.state)
        self.health_status = "Healthy"
        self.protected_from_scale_in = member.protected
        self.auto_scaling_group = group
        self.auto_scaling_group_name = group.name
        template = group.ec2_launch_template
        self.launch_template = template and {
            "LaunchTemplateId": template.id,
            "LaunchTemplateName": template.name,
            "Version": member.version,
        }


class MotoGroups:
    """The groups of one account and Region."""

    def __init__(self, account_id: str, region_name: str, ec2: MotoRegion) -> None:
        self._backend: Any = autoscaling_backends[account_id][region_name]
        self._ec2 = ec2

    def names(self) -> list[str]:
        """Return the groups that exist."""
        return list(self._backend.autoscaling_groups)

    def shape(self, name: str) -> GroupShape:
        """Return the owner's current settings of a group."""
        group = self._backend.autoscaling_groups[name]
        policy = group.mixed_instances_policy or {}
        distribution = policy.get("InstancesDistribution") or {}
        data = self._data(group)
        market = (data.get("InstanceMarketOptions") or {}).get("MarketType")
        percent = float(distribution.get("OnDemandPercentageAboveBaseCapacity", 100))
        spot = 1.0 - percent / 100 if policy else float(market == "spot")
        return GroupShape(
            name=name,
            desired=int(group.desired_capacity or 0),
            min_size=int(group.min_size or 0),
            max_size=int(group.max_size or 0),
            pools=tuple(self._pools(group, data)),
            spot_above_base=spot,
            on_demand_base=int(distribution.get("OnDemandBaseCapacity", 0)) if policy else 0,
            suspended=frozenset(group._suspended_processes),  # noqa: SLF001 - moto shows a list of dicts
            hooks=tuple(self._hooks(name)),
            protects_new=bool(group.new_instances_protected_from_scale_in),
        )

    def tags(self, name: str) -> dict[str, str]:
        """Return the tags that each instance of the group gets at its launch."""
        group = self._backend.autoscaling_groups[name]
        return {**group.get_propagated_tags(), GROUP_TAG: name}

    def set_desired(self, name: str, desired: int) -> None:
        """Set the desired capacity of a group."""
        self._backend.autoscaling_groups[name].desired_capacity = desired

    def show(self, name: str, members: Iterable[GroupMember]) -> None:
        """Make the API answer with these members from now on."""
        group = self._backend.autoscaling_groups[name]
        group.instance_states = [_ShownMember(group, member) for member in members]

    def shown(self, name: str) -> dict[str, tuple[bool, bool]]:
        """Return whether each member is protected and in standby, as callers set it."""
        group = self._backend.autoscaling_groups[name]
        return {
            instance_state.instance_id: (
                bool(instance_state.protected_from_scale_in),
                instance_state.lifecycle_state == "Standby",
            )
            for instance_state in group.instance_states
        }

    def _data(self, group: Any) -> Mapping[str, Any]:
        if group.ec2_launch_template is None:
            return {}
        try:
            return self._ec2.template_data(self._ref(group))
        except Ec2Fault:
            return {}

    def _ref(self, group: Any) -> LaunchTemplateRef:
        return LaunchTemplateRef(
            template_id=group.ec2_launch_template.id, version=str(group.launch_template_version)
        )

    def _pools(self, group: Any, data: Mapping[str, Any]) -> Iterable[Pool]:
        """Return every override in every subnet; none for a group with a launch configuration."""
        if group.ec2_launch_template is None:
            return
        mixed = (group.mixed_instances_policy or {}).get("LaunchTemplate") or {}
        types = [e.get("InstanceType") for e in mixed.get("Overrides") or ()]
        order = 0
        for instance_type in filter(None, types or [data.get("InstanceType")]):
            for zone, subnet_id in self._places(group):
                yield Pool(
                    template=self._ref(group),
                    instance_type=str(instance_type),
                    zone=zone,
                    subnet_id=subnet_id,
                    weight=1.0,
                    priority=float(order),
                    max_price=None,
                    image_id=None,
                    order=order,
                )
                order += 1

    def _places(self, group: Any) -> list[tuple[str, str | None]]:
        subnets = [each for each in (group.vpc_zone_identifier or "").split(",") if each]
        if subnets:
            return [(self._ec2.zone_of_subnet(subnet), subnet) for subnet in subnets]
        defaults = self._ec2.default_subnets()
        return [(zone, defaults.get(zone)) for zone in group.availability_zones]

    def _hooks(self, name: str) -> Iterable[Hook]:
        for hook in self._backend.describe_lifecycle_hooks(name, []):
            transition = _TRANSITIONS.get(hook.lifecycle_transition)
            if transition is not None:
                seconds = float(hook.heartbeat_timeout)
                yield Hook(name=hook.name, transition=transition, timeout_seconds=seconds)
