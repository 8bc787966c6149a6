"""Fleets as Terraform sees them, from EC2's answers: for adopting what exists."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta, Struct

from reconciler.model.fleet_description import (
    FleetDescription,
    LaunchTemplateDescription,
    VolumeDescription,
)
from reconciler.model.ids import FleetId
from reconciler.model.snapshot import Ignored
from reconciler.records.aws.fields import TagWire, Wire, is_of_cluster, read_entries, tags_of
from reconciler.records.aws.fleets import ENDED_STATES, TemplateSpecificationWire

Count = Annotated[int, Meta(ge=0, lt=2**31)]


class _OverrideWire(Wire):
    instance_type: str | None = None
    subnet_id: str | None = None
    availability_zone: str | None = None
    max_price: str | None = None
    weighted_capacity: float | None = None


class _ConfigWire(Wire):
    launch_template_specification: TemplateSpecificationWire | None = None
    overrides: tuple[_OverrideWire, ...] | None = None


class _CapacityWire(Wire):
    total_target_capacity: Count = 0
    default_target_capacity_type: str | None = None


class _OptionsWire(Wire):
    allocation_strategy: str | None = None


class _FleetWire(Wire):
    fleet_id: str
    target_capacity_specification: _CapacityWire
    fleet_state: str | None = None
    type: str | None = None
    launch_template_configs: tuple[_ConfigWire, ...] | None = None
    spot_options: _OptionsWire | None = None
    tags: tuple[TagWire, ...] | None = None


class _DistributionWire(Wire):
    on_demand_base_capacity: int | None = None
    on_demand_percentage_above_base_capacity: int | None = None


class _MixedPolicyWire(Wire):
    instances_distribution: _DistributionWire | None = None


class _GroupWire(Wire):
    auto_scaling_group_name: str
    mixed_instances_policy: _MixedPolicyWire | None = None


class _SubnetWire(Wire):
    subnet_id: str
    availability_zone: str


# EC2 writes these keys with runs of capitals, which a renaming rule cannot guess.
class _EbsWire(Struct, gc=False):
    VolumeSize: Count | None = None
    VolumeType: str | None = None
    Iops: Count | None = None
    Throughput: Count | None = None
    Encrypted: bool | None = None
    KmsKeyId: str | None = None


class _DeviceWire(Wire):
    device_name: str = ""
    ebs: _EbsWire | None = None


class _ProfileWire(Wire):
    name: str | None = None
    arn: str | None = None


class _MetadataWire(Wire):
    http_put_response_hop_limit: Count | None = None


class _InterfaceWire(Wire):
    groups: tuple[str, ...] | None = None


class _DataWire(Wire):
    image_id: str | None = None
    instance_type: str | None = None
    key_name: str | None = None
    security_group_ids: tuple[str, ...] | None = None
    network_interfaces: tuple[_InterfaceWire, ...] | None = None
    iam_instance_profile: _ProfileWire | None = None
    metadata_options: _MetadataWire | None = None
    block_device_mappings: tuple[_DeviceWire, ...] | None = None
    user_data: str | None = None


class _VersionWire(Wire):
    launch_template_id: str
    version_number: Count
    launch_template_name: str = ""
    default_version: bool = False
    launch_template_data: _DataWire | None = None


@dataclass(slots=True)
class _Templates:
    versions: dict[tuple[str, int], _VersionWire] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def add(self, wire: _VersionWire) -> None:
        self.versions[wire.launch_template_id, wire.version_number] = wire
        self.ids[wire.launch_template_name] = wire.launch_template_id

    def used_by(self, specification: TemplateSpecificationWire) -> _VersionWire | None:
        """The version that a specification means, None when no answer has it."""
        named = self.ids.get(specification.launch_template_name or "", "")
        template_id = specification.launch_template_id or named
        of_it = {number: v for (each, number), v in self.versions.items() if each == template_id}
        wanted = specification.version or "$Default"
        if not of_it:
            return None
        if wanted == "$Latest":
            return of_it[max(of_it)]
        if wanted == "$Default":
            return next((each for each in of_it.values() if each.default_version), None)
        return of_it.get(int(wanted)) if wanted.isdigit() else None


def read_descriptions(
    answers: Sequence[Mapping[str, Any]], cluster: str, ignored: list[Ignored]
) -> tuple[FleetDescription, ...]:
    """The maintain fleets of a cluster, in the order of their ids.

    Args:
        answers: describe-fleets, describe-launch-template-versions and describe-subnets of one
            region; others are passed over.
        cluster: The name that tags carry.
        ignored: Takes what cannot be read.
    """
    templates, zones = _Templates(), dict[str, str]()
    for answer in answers:
        versions = answer.get("LaunchTemplateVersions")
        key = "LaunchTemplateId"
        for version in read_entries(versions, _VersionWire, "LaunchTemplateVersion", key, ignored):
            templates.add(version)
        subnets = read_entries(answer.get("Subnets"), _SubnetWire, "Subnet", "SubnetId", ignored)
        zones |= {subnet.subnet_id: subnet.availability_zone for subnet in subnets}
    found = {
        wire.fleet_id: _fleet(wire, templates, zones)
        for answer in answers
        for wire in read_entries(answer.get("Fleets"), _FleetWire, "Fleet", "FleetId", ignored)
        if wire.type in {None, "maintain"}
        and wire.fleet_state not in ENDED_STATES
        and not (wire.fleet_state or "").startswith("deleted")
        and is_of_cluster(tags_of(wire.tags), cluster)
    }
    return tuple(found[each] for each in sorted(found))


def read_spot_groups(answers: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Names of the Auto Scaling groups that launch spot instances only.

    Source: Auto Scaling InstancesDistribution reference (defaults: 0 base, 100 %), read 2026-11.
    """
    found = set()
    for answer in answers:
        entries = answer.get("AutoScalingGroups")
        for wire in read_entries(
            entries, _GroupWire, "AutoScalingGroup", "AutoScalingGroupName", []
        ):
            policy = wire.mixed_instances_policy or _MixedPolicyWire()
            shares = policy.instances_distribution or _DistributionWire()
            all_spot = shares.on_demand_percentage_above_base_capacity == 0
            if all_spot and not shares.on_demand_base_capacity:
                found.add(wire.auto_scaling_group_name)
    return frozenset(found)


def _fleet(wire: _FleetWire, templates: _Templates, zones: Mapping[str, str]) -> FleetDescription:
    configs = wire.launch_template_configs or ()
    overrides = [each for config in configs for each in config.overrides or ()]
    specification = next((c.launch_template_specification for c in configs), None)
    version = templates.used_by(specification) if specification else None
    subnets = _distinct(each.subnet_id for each in overrides)
    known = {each.subnet_id: each.availability_zone for each in overrides}
    prices = _distinct(each.max_price for each in overrides)
    capacity = wire.target_capacity_specification
    return FleetDescription(
        id=FleetId(wire.fleet_id),
        tags=tags_of(wire.tags),
        spot=capacity.default_target_capacity_type != "on-demand",
        allocation_strategy=(wire.spot_options.allocation_strategy or "")
        if wire.spot_options
        else "",
        target_capacity=capacity.total_target_capacity,
        instance_types=_distinct(each.instance_type for each in overrides),
        subnet_ids=subnets,
        zones={each: zone for each in subnets if (zone := zones.get(each) or known.get(each))},
        max_price=prices[0] if len(prices) == 1 else "",
        weighted=any(each.weighted_capacity not in {None, 1} for each in overrides),
        several_templates=len(_template_names(configs)) > 1,
        template=_template(version) if version else None,
    )


def _template_names(configs: Sequence[_ConfigWire]) -> set[str]:
    specifications = [each.launch_template_specification for each in configs]
    return {
        each.launch_template_id or each.launch_template_name or ""
        for each in specifications
        if each
    }


def _template(version: _VersionWire) -> LaunchTemplateDescription:
    data = version.launch_template_data or _DataWire()
    profile = data.iam_instance_profile or _ProfileWire()
    return LaunchTemplateDescription(
        id=version.launch_template_id,
        name=version.launch_template_name,
        image_id=data.image_id or "",
        instance_type=data.instance_type or "",
        key_name=data.key_name or "",
        security_group_ids=data.security_group_ids or _interface_groups(data),
        instance_profile_name=profile.name or (profile.arn or "").rpartition("/")[2],
        metadata_hop_limit=(data.metadata_options or _MetadataWire()).http_put_response_hop_limit,
        volumes=tuple(_volume(each) for each in data.block_device_mappings or () if each.ebs),
        user_data=_text(data.user_data or ""),
    )


def _interface_groups(data: _DataWire) -> tuple[str, ...]:
    """Security groups of a template that states its network interfaces."""
    return _distinct(g for each in data.network_interfaces or () for g in each.groups or ())


def _volume(wire: _DeviceWire) -> VolumeDescription:
    ebs = wire.ebs or _EbsWire()
    return VolumeDescription(
        device_name=wire.device_name,
        size_gib=ebs.VolumeSize,
        type=ebs.VolumeType or "",
        iops=ebs.Iops,
        throughput_mib_per_second=ebs.Throughput,
        encrypted=ebs.Encrypted,
        kms_key_id=ebs.KmsKeyId or "",
    )


def _text(encoded: str) -> str:
    """User data as text; empty when it is none."""
    try:
        return base64.b64decode(encoded, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""


def _distinct(values: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for each in values if each))
