"""Auto Scaling groups as Terraform describes them, from AWS's answers: for adopting them."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from reconciler.model.fleet_description import (
    FleetDescription,
    GroupDescription,
    OverrideDescription,
)
from reconciler.model.ids import FleetId
from reconciler.model.snapshot import Ignored
from reconciler.records.aws.descriptions import Templates, read_templates_and_zones
from reconciler.records.aws.fields import Count, TagWire, Wire, read_entries, tags_of
from reconciler.records.aws.group_market import ALL_ON_DEMAND, DistributionWire
from reconciler.records.aws.launch_templates import TemplateSpecificationWire

_STRATEGIES: Final = frozenset({"price-capacity-optimized", "capacity-optimized", "lowest-price"})
_IMPORTABLE: Final = re.compile(r"[\w.:/ -]+", re.ASCII)
"""Names that an import block in a rendered root module may have."""


class _TagWire(TagWire):
    propagate_at_launch: bool | None = None


class _OverrideWire(Wire):
    instance_type: str | None = None
    weighted_capacity: str | None = None
    launch_template_specification: Any = None
    instance_requirements: Any = None
    image_id: Any = None


class _TemplateWire(Wire):
    launch_template_specification: TemplateSpecificationWire | None = None
    overrides: tuple[_OverrideWire, ...] | None = None


class _PolicyWire(Wire):
    launch_template: _TemplateWire | None = None
    instances_distribution: DistributionWire | None = None


class _GroupWire(Wire):
    auto_scaling_group_name: str
    desired_capacity: Count = 0
    max_size: Count = 0
    min_size: Count = 0
    tags: tuple[_TagWire, ...] | None = None
    launch_template: TemplateSpecificationWire | None = None
    mixed_instances_policy: _PolicyWire | None = None
    desired_capacity_type: str | None = None
    vpc_zone_identifier: str | None = msgspec.field(name="VPCZoneIdentifier", default=None)

    @property
    def policy(self) -> _TemplateWire | None:
        """Return the launch template and its options of a mixed instances policy."""
        return self.mixed_instances_policy.launch_template if self.mixed_instances_policy else None

    @property
    def specification(self) -> TemplateSpecificationWire | None:
        """Return the launch template that it launches from."""
        return self.policy.launch_template_specification if self.policy else self.launch_template

    @property
    def shares(self) -> DistributionWire:
        """Return its distribution over on-demand and spot."""
        policy = self.mixed_instances_policy
        return (policy.instances_distribution if policy else None) or DistributionWire()


def read_group_descriptions(
    answers: Sequence[Mapping[str, Any]], names: Collection[str], ignored: list[Ignored]
) -> tuple[FleetDescription, ...]:
    """Return the groups of these names, in their order.

    Args:
        answers: describe-auto-scaling-groups, describe-launch-template-versions,
            describe-launch-templates and describe-subnets of one region.
        names: The groups.
        ignored: Collects what cannot be read.
    """
    templates, zones = read_templates_and_zones(answers, [])
    group_wires = {wire.auto_scaling_group_name: wire for wire in _groups(answers, ignored)}
    return tuple(
        _described(group_wires[n], templates, zones) for n in sorted(names) if n in group_wires
    )


def _groups(answers: Sequence[Mapping[str, Any]], ignored: list[Ignored]) -> Iterator[_GroupWire]:
    kind, key = "AutoScalingGroup", "AutoScalingGroupName"
    for answer in answers:
        yield from read_entries(answer.get("AutoScalingGroups"), _GroupWire, kind, key, ignored)


def _described(
    wire: _GroupWire, templates: Templates, zones: Mapping[str, str]
) -> FleetDescription:
    """Return the group; one without a mixed instances policy launches on-demand instances."""
    options = (wire.policy.overrides if wire.policy else None) or ()
    subnets = tuple(filter(None, (wire.vpc_zone_identifier or "").split(",")))
    percentage = wire.shares.on_demand_percentage if wire.policy else ALL_ON_DEMAND
    specification = wire.specification
    return FleetDescription(
        id=FleetId(wire.auto_scaling_group_name),
        tags=tags_of(wire.tags),
        spot=percentage < ALL_ON_DEMAND,
        allocation_strategy=wire.shares.spot_allocation_strategy or "",
        target_capacity=wire.desired_capacity,
        overrides=tuple(OverrideDescription(instance_type=e.instance_type) for e in options),
        zones={subnet: zones[subnet] for subnet in subnets if subnet in zones},
        template=templates.described(specification) if specification else None,
        template_version=(specification.version if specification else None) or "$Default",
        group=GroupDescription(
            max_size=wire.max_size,
            subnet_ids=subnets,
            tags=_own_tags(wire),
            mixed=wire.policy is not None,
            on_demand_base=wire.shares.on_demand_base_capacity or 0,
            on_demand_percentage=percentage,
            max_price=wire.shares.spot_max_price or "",
            unfit=next(_unfit(wire, subnets, zones), ""),
        ),
    )


def _own_tags(wire: _GroupWire) -> tuple[tuple[str, str, bool], ...]:
    """Return `GroupDescription.tags`, without those that AWS makes, by key."""
    return tuple(
        (tag.key, tag.value or "", bool(tag.propagate_at_launch))
        for tag in sorted(wire.tags or (), key=lambda tag: tag.key)
        if not tag.key.startswith("aws:")
    )


def _unfit(wire: _GroupWire, subnets: Sequence[str], zones: Mapping[str, str]) -> Iterator[str]:
    """Yield what of a group the module eks_group cannot express."""
    if any(tag.key == "eks:nodegroup-name" for tag in wire.tags or ()):
        yield "EKS makes it, for a managed node group"
    if wire.specification is None:
        yield "it launches from a launch configuration; the module launches from a template"
    if wire.desired_capacity_type not in {None, "", "units"}:
        yield f"its desired capacity counts {wire.desired_capacity_type}, not nodes"
    if not _IMPORTABLE.fullmatch(wire.auto_scaling_group_name):
        yield "its name has characters that an import block here may not have"
    places = [zones.get(subnet) for subnet in subnets]
    if not places or None in places:
        yield "the zones of its subnets are not known (describe-subnets)"
    elif len(set(places)) < len(places):
        yield "it has several subnets in one zone; the module takes one of each"
    if wire.policy is not None:
        yield from _unfit_policy(wire.policy, wire)


def _unfit_policy(policy: _TemplateWire, wire: _GroupWire) -> Iterator[str]:
    options = policy.overrides or ()
    if not all(option.instance_type for option in options) or not options:
        yield "its mixed instances policy names no instance types"
    if any(option.weighted_capacity not in {None, "1"} for option in options):
        yield "its instance types have weights: its desired capacity counts units"
    if any(option.launch_template_specification or option.image_id for option in options):
        yield "some of its instance types have a launch template or an image of their own"
    strategy = wire.shares.spot_allocation_strategy
    all_on_demand = wire.shares.on_demand_percentage == ALL_ON_DEMAND
    # Without spot instances as well: the policy states it, and Terraform would change it.
    if strategy not in _STRATEGIES and not (all_on_demand and strategy is None):
        yield f"its spot allocation strategy is {strategy}"
    if all_on_demand and wire.shares.spot_max_price:
        yield "it states a price for spot instances though all of its instances are on-demand"
    if all_on_demand and wire.shares.on_demand_base_capacity:
        yield "it states a base of on-demand instances though all of its instances are on-demand"
