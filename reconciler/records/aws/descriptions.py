"""Fleets as Terraform describes them, from EC2's answers: for adopting existing fleets."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from reconciler.model.fleet_description import (
    FleetDescription,
    LaunchTemplateDescription,
    OverrideDescription,
)
from reconciler.model.frozen import Labels
from reconciler.model.ids import FleetId
from reconciler.model.snapshot import Ignored
from reconciler.records.aws.fields import (
    Count,
    TagWire,
    Wire,
    is_of_cluster,
    moment_of,
    read_entries,
    tags_of,
)
from reconciler.records.aws.fleets import ENDED_STATES, SpotOptionsWire
from reconciler.records.aws.launch_templates import TemplateSpecificationWire


class _OverrideWire(Wire):
    instance_type: str | None = None
    subnet_id: str | None = None
    availability_zone: str | None = None
    max_price: str | None = None
    priority: float | None = None
    weighted_capacity: float | None = None
    availability_zone_id: Any = None
    block_device_mappings: Any = None
    image_id: Any = None
    instance_requirements: Any = None
    placement: Any = None

    @property
    def others(self) -> Iterator[str]:
        """Yield EC2's names of settings that no variable of the module can express."""
        named = {
            "AvailabilityZoneId": self.availability_zone_id,
            "BlockDeviceMappings": self.block_device_mappings,
            "ImageId": self.image_id,
            "InstanceRequirements": self.instance_requirements,
            "Placement": self.placement,
        }
        return (key for key, value in named.items() if value)


class _ConfigWire(Wire):
    launch_template_specification: TemplateSpecificationWire | None = None
    overrides: tuple[_OverrideWire, ...] | None = None


class _CapacityWire(Wire):
    total_target_capacity: Count = 0
    on_demand_target_capacity: Count | None = None
    spot_target_capacity: Count | None = None
    default_target_capacity_type: str | None = None
    target_capacity_unit_type: str | None = None

    @property
    def spot(self) -> bool:
        """Return whether EC2 launches spot instances; it does where nothing is stated."""
        return self.default_target_capacity_type != "on-demand"

    @property
    def counted_unit(self) -> str:
        """Return what the target counts instead of nodes or weights; empty: nothing."""
        unit = self.target_capacity_unit_type or ""
        return "" if unit == "units" else unit


class _FleetWire(Wire):
    fleet_id: str
    target_capacity_specification: _CapacityWire
    fleet_state: str | None = None
    create_time: Any = None
    type: str | None = None
    launch_template_configs: tuple[_ConfigWire, ...] | None = None
    spot_options: SpotOptionsWire | None = None
    excess_capacity_termination_policy: str | None = None
    replace_unhealthy_instances: bool | None = None
    valid_until: Any = None
    tags: tuple[TagWire, ...] | None = None


class _SubnetWire(Wire):
    subnet_id: str
    availability_zone: str


class _VersionWire(Wire):
    launch_template_id: str
    version_number: Count
    launch_template_name: str = ""
    version_description: str | None = None
    default_version: bool = False
    launch_template_data: dict[str, Any] | None = None


class _TemplateWire(Wire):
    launch_template_id: str
    tags: tuple[TagWire, ...] | None = None
    latest_version_number: Count | None = None


@dataclass(slots=True)
class Templates:
    """Launch templates and their versions."""

    versions: dict[tuple[str, int], _VersionWire] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    tags: dict[str, Labels] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)

    def add(self, wire: _VersionWire) -> None:
        """Add a version."""
        self.versions[wire.launch_template_id, wire.version_number] = wire
        self.ids[wire.launch_template_name] = wire.launch_template_id
        self._newest(wire.launch_template_id, wire.version_number)

    def add_template(self, wire: _TemplateWire) -> None:
        """Add a template's own settings, without those of its versions."""
        self.tags[wire.launch_template_id] = tags_of(wire.tags)
        self._newest(wire.launch_template_id, wire.latest_version_number or 0)

    def _newest(self, template_id: str, number: int) -> None:
        self.latest[template_id] = max(number, self.latest.get(template_id, 0))

    def described(
        self, specification: TemplateSpecificationWire
    ) -> LaunchTemplateDescription | None:
        """Return the version that a specification means; None when no answer has it."""
        version = self._used_by(specification)
        if version is None:
            return None
        template_id = version.launch_template_id
        return LaunchTemplateDescription(
            id=template_id,
            name=version.launch_template_name,
            version=version.version_number,
            latest_version=self.latest[template_id],
            description=version.version_description or "",
            tags=self.tags.get(template_id),
            data=_without_empty(version.launch_template_data or {}),
        )

    def _used_by(self, specification: TemplateSpecificationWire) -> _VersionWire | None:
        named = self.ids.get(specification.launch_template_name or "", "")
        template_id = specification.launch_template_id or named
        of_it = {number: v for (each, number), v in self.versions.items() if each == template_id}
        wanted = specification.version or "$Default"
        if not of_it:
            return None
        if wanted == "$Latest":
            return of_it[max(of_it)]
        if wanted == "$Default":
            return next(
                (version_wire for version_wire in of_it.values() if version_wire.default_version),
                None,
            )
        return of_it.get(int(wanted)) if wanted.isdigit() else None


def read_descriptions(
    answers: Sequence[Mapping[str, Any]], cluster: str, ignored: list[Ignored]
) -> tuple[FleetDescription, ...]:
    """Return the maintain fleets of a cluster, in the order of their ids.

    Args:
        answers: describe-fleets, describe-launch-template-versions, describe-launch-templates and
            describe-subnets of one region; others are ignored.
        cluster: The name that tags carry.
        ignored: Collects what cannot be read.
    """
    templates, zones = read_templates_and_zones(answers, ignored)
    ours = {
        wire.fleet_id: wire
        for answer in answers
        for wire in read_entries(answer.get("Fleets"), _FleetWire, "Fleet", "FleetId", ignored)
        if wire.type in {None, "maintain"}
        and wire.fleet_state not in ENDED_STATES
        and not (wire.fleet_state or "").startswith("deleted")
        and is_of_cluster(tags_of(wire.tags), cluster)
    }
    # Of several with one name the oldest is used, as in capacity planning.
    return tuple(
        _fleet(fleet_wire, templates, zones) for fleet_wire in sorted(ours.values(), key=_age)
    )


def read_templates_and_zones(
    answers: Sequence[Mapping[str, Any]], ignored: list[Ignored]
) -> tuple["Templates", dict[str, str]]:
    """Return the launch templates of the answers, and the zone of each subnet."""
    templates, zones = Templates(), dict[str, str]()
    for answer in answers:
        versions = answer.get("LaunchTemplateVersions")
        key = "LaunchTemplateId"
        for version in read_entries(versions, _VersionWire, "LaunchTemplateVersion", key, ignored):
            templates.add(version)
        found = answer.get("LaunchTemplates")
        for entry in read_entries(found, _TemplateWire, "LaunchTemplate", key, ignored):
            templates.add_template(entry)
        subnets = read_entries(answer.get("Subnets"), _SubnetWire, "Subnet", "SubnetId", ignored)
        zones |= {subnet.subnet_id: subnet.availability_zone for subnet in subnets}
    return templates, zones


def _age(wire: _FleetWire) -> tuple[str, str]:
    with suppress(ValueError, OverflowError):
        return str(moment_of(wire.create_time) or ""), wire.fleet_id
    return "", wire.fleet_id


def _fleet(wire: _FleetWire, templates: Templates, zones: Mapping[str, str]) -> FleetDescription:
    """Return the fleet; with several launch templates only the first one is described."""
    configs = wire.launch_template_configs or ()
    written = [override for config in configs for override in config.overrides or ()]
    overrides = tuple(map(_override, written))
    specification = next((c.launch_template_specification for c in configs), None)
    capacity, options = wire.target_capacity_specification, wire.spot_options or SpotOptionsWire()
    return FleetDescription(
        id=FleetId(wire.fleet_id),
        tags=tags_of(wire.tags),
        spot=capacity.spot,
        allocation_strategy=options.allocation_strategy or "",
        interruption_behavior=options.instance_interruption_behavior or "terminate",
        rebalances_capacity=options.rebalances_capacity,
        ends_replaced=options.ends_replaced,
        target_capacity=capacity.total_target_capacity,
        on_demand_target=capacity.on_demand_target_capacity or 0,
        spot_target=capacity.spot_target_capacity or 0,
        overrides=overrides,
        other_override_keys=tuple(
            sorted({key for override_wire in written for key in override_wire.others})
        ),
        ends_excess=wire.excess_capacity_termination_policy == "termination",
        replaces_unhealthy=bool(wire.replace_unhealthy_instances),
        valid_until=str(wire.valid_until or ""),
        zones=_zones_of(overrides, zones),
        counted_unit=capacity.counted_unit,
        weighted=any(override.weighted_capacity not in {None, 1} for override in overrides),
        several_templates=len(_template_versions(configs)) > 1,
        template=templates.described(specification) if specification else None,
        template_version=(specification.version if specification else None) or "$Default",
        template_by_name=bool(specification and not specification.launch_template_id),
    )


def _zones_of(overrides: Sequence[OverrideDescription], zones: Mapping[str, str]) -> dict[str, str]:
    """Return the zone of each subnet, by `zones` or else as an override states it, where known."""
    subnets = _distinct(override.subnet_id for override in overrides)
    stated = {override.subnet_id: override.availability_zone for override in overrides}
    return {subnet: zone for subnet in subnets if (zone := zones.get(subnet) or stated.get(subnet))}


def _override(wire: _OverrideWire) -> OverrideDescription:
    return OverrideDescription(
        instance_type=wire.instance_type,
        subnet_id=wire.subnet_id,
        availability_zone=wire.availability_zone,
        max_price=wire.max_price,
        priority=wire.priority,
        weighted_capacity=wire.weighted_capacity,
    )


def _template_versions(configs: Sequence[_ConfigWire]) -> set[tuple[str, str]]:
    specifications = [config.launch_template_specification for config in configs]
    return {
        (
            specification.launch_template_id or specification.launch_template_name or "",
            specification.version or "$Default",
        )
        for specification in specifications
        if specification
    }


def _without_empty(data: Mapping[str, Any]) -> dict[str, Any]:
    """Remove empty values, which EC2 and its emulations return for some unset fields."""
    return {key: value for key, value in data.items() if value not in (None, "", {}, [])}


def _distinct(values: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
