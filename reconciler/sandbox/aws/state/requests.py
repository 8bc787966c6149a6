"""Parses the parameters of CreateFleet and ModifyFleet, with EC2's defaults.

Parameters come by botocore's names (`TargetCapacitySpecification`), already typed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

from reconciler.sandbox.aws.errors import Ec2Fault
from reconciler.sandbox.aws.values import (
    FleetChange,
    FleetRequest,
    FleetType,
    LaunchTemplateRef,
    Lifecycle,
    Pool,
    TargetCapacity,
    TerminationPolicy,
)

_TARGET_MAX = 10_000
"""Units per fleet. Source: EC2 Fleet quotas, read 2026-08."""

Parameters = Mapping[str, Any]


class Places(Protocol):
    """What a request refers to in its Region."""

    def template_data(self, ref: LaunchTemplateRef) -> Mapping[str, Any]:
        """Return the data of a launch template version."""
        ...

    def zone_of_subnet(self, subnet_id: str) -> str:
        """Return the zone a subnet lies in."""
        ...

    def default_subnets(self) -> Mapping[str, str]:
        """Return the ids of the default subnets by zone."""
        ...


def parse_create(params: Parameters, places: Places) -> FleetRequest:
    """Check a CreateFleet request.

    Raises:
        Ec2Fault: Something is missing, out of bounds or does not exist.
    """
    configs = _configs(params)
    if not configs:
        raise Ec2Fault(
            "MissingParameter", "The request must contain the parameter launchTemplateConfigs"
        )
    fleet_type = cast("FleetType", params.get("Type") or "maintain")
    _one_of("Type", fleet_type, ("maintain", "request", "instant"))
    if fleet_type != "instant":
        _images_are_ids(configs, places)
    return FleetRequest(
        fleet_type=fleet_type,
        target=_target(params.get("TargetCapacitySpecification") or {}),
        pools=parse_pools(configs, places),
        launch_template_configs=configs,
        excess_policy=_policy(params) or "termination",
        spot_options=_spot_options(params.get("SpotOptions") or {}),
        on_demand_options=_on_demand_options(params.get("OnDemandOptions") or {}),
        replace_unhealthy=bool(params.get("ReplaceUnhealthyInstances")),
        terminate_with_expiration=bool(params.get("TerminateInstancesWithExpiration")),
        context=params.get("Context"),
        client_token=params.get("ClientToken"),
        valid_from=params.get("ValidFrom"),
        valid_until=params.get("ValidUntil"),
        instance_tags=parse_tags(params, "instance") if fleet_type == "instant" else {},
    )


def parse_modify(params: Parameters, places: Places) -> FleetChange:
    """Check a ModifyFleet request.

    Raises:
        Ec2Fault: A value is out of bounds, or the split between lifecycles is to be changed,
            which EC2 does not do (seen by the Terraform provider's authors).
    """
    target = params.get("TargetCapacitySpecification") or {}
    if "OnDemandTargetCapacity" in target or "SpotTargetCapacity" in target:
        raise Ec2Fault(
            "InvalidTargetCapacitySpecification",
            "Currently we only support total target capacity modification.",
        )
    configs = _configs(params)
    _images_are_ids(configs, places)
    return FleetChange(
        total=None if not target else _bounded(target.get("TotalTargetCapacity")),
        excess_policy=_policy(params),
        pools=parse_pools(configs, places) if configs else None,
        launch_template_configs=configs or None,
        context=params.get("Context"),
    )


def parse_tags(params: Parameters, resource_type: str) -> dict[str, str]:
    """Return the tags that `TagSpecifications` has for one kind of resource."""
    return {
        tag["Key"]: tag.get("Value", "")
        for spec in params.get("TagSpecifications") or []
        if spec.get("ResourceType") == resource_type
        for tag in spec.get("Tags") or []
    }


def parse_pools(configs: Sequence[Parameters], places: Places) -> tuple[Pool, ...]:
    """Return every pool the configs name, in order: overrides times subnets.

    Raises:
        Ec2Fault: A template, version or subnet is not there, or nothing names an instance type.
    """
    pools: list[Pool] = []
    for config in configs:
        ref = _template_ref(config.get("LaunchTemplateSpecification") or {})
        data = places.template_data(ref)
        for override in config.get("Overrides") or [{}]:
            for zone, subnet_id in _zones(override, data, places):
                pool = _pool(ref, {**data, **override}, zone, subnet_id, len(pools))
                # What the override does not state is taken from the version at the time of each
                # launch.
                pools.append(replace(pool, image_id=override.get("ImageId")))
    return tuple(pools)


def _images_are_ids(configs: Sequence[Parameters], places: Places) -> None:
    """Refuse images by parameter, which EC2 resolves for fleets of type instant only.

    Source: RequestLaunchTemplateData.ImageId of the EC2 API, read 2026-11. The error's code is not
    documented.
    """
    for config in configs:
        data = places.template_data(_template_ref(config.get("LaunchTemplateSpecification") or {}))
        for image in (data, *(config.get("Overrides") or ())):
            if str(image.get("ImageId", "")).startswith("resolve:ssm:"):
                raise Ec2Fault(
                    "InvalidParameterValue",
                    "A Systems Manager parameter can name the image for EC2 Fleets of type instant"
                    " only; for maintain and request specify the AMI ID",
                )


def _pool(
    ref: LaunchTemplateRef,
    override: Parameters,
    zone: str,
    subnet_id: str | None,
    order: int,
) -> Pool:
    """Return one pool; `override` has the template's data beneath it."""
    instance_type = override.get("InstanceType")
    if not instance_type:
        raise Ec2Fault(
            "InvalidParameterCombination",
            "An override must name an InstanceType: attribute-based selection is not offered here",
        )
    priority = override.get("Priority")
    return Pool(
        template=ref,
        instance_type=str(instance_type),
        zone=zone,
        subnet_id=subnet_id,
        weight=float(override.get("WeightedCapacity") or 1),
        priority=float("inf") if priority is None else float(priority),
        max_price=override.get("MaxPrice"),
        image_id=None,
        order=order,
    )


def _zones(
    override: Parameters, data: Parameters, places: Places
) -> Iterator[tuple[str, str | None]]:
    """Yield the zone and subnet of each pool of one override: subnets decide, then zones."""
    subnets = override.get("SubnetId") or _template_subnet(data)
    if subnets:
        for subnet_id in re.split(r"\s*,\s*", subnets.strip()):
            yield places.zone_of_subnet(subnet_id), subnet_id
        return
    placement = override.get("Placement") or data.get("Placement") or {}
    zone = override.get("AvailabilityZone") or placement.get("AvailabilityZone")
    defaults = places.default_subnets()
    for name in [zone] if zone else sorted(defaults):
        yield name, defaults.get(name)


def _template_subnet(data: Parameters) -> str | None:
    interfaces = data.get("NetworkInterfaces") or [{}]
    subnet_id = interfaces[0].get("SubnetId")
    return None if subnet_id is None else str(subnet_id)


def _configs(params: Parameters) -> tuple[Parameters, ...]:
    return tuple(params.get("LaunchTemplateConfigs") or ())


def _template_ref(spec: Parameters) -> LaunchTemplateRef:
    template_id, name = spec.get("LaunchTemplateId"), spec.get("LaunchTemplateName")
    if (template_id is None) == (name is None):
        raise Ec2Fault(
            "InvalidParameterCombination",
            "Either the launch template ID or its name must be specified, but not both",
        )
    return LaunchTemplateRef(
        template_id=template_id, template_name=name, version=spec.get("Version") or "$Default"
    )


def _target(spec: Parameters) -> TargetCapacity:
    total = _bounded(spec.get("TotalTargetCapacity"))
    default = cast("Lifecycle", spec.get("DefaultTargetCapacityType") or "on-demand")
    _one_of("DefaultTargetCapacityType", default, ("spot", "on-demand"))
    on_demand = int(spec.get("OnDemandTargetCapacity") or 0)
    spot = int(spec.get("SpotTargetCapacity") or 0)
    rest = total - on_demand - spot
    if rest < 0 or on_demand < 0 or spot < 0:
        raise Ec2Fault(
            "InvalidTargetCapacitySpecification",
            "OnDemandTargetCapacity and SpotTargetCapacity may not exceed TotalTargetCapacity",
        )
    return TargetCapacity(
        total=total,
        on_demand=on_demand + (rest if default == "on-demand" else 0),
        spot=spot + (rest if default == "spot" else 0),
        default_type=default,
        unit_type=spec.get("TargetCapacityUnitType"),
    )


def _bounded(total: int | None) -> int:
    if total is None:
        raise Ec2Fault(
            "MissingParameter", "The request must contain the parameter totalTargetCapacity"
        )
    if not 0 <= total <= _TARGET_MAX:
        raise Ec2Fault(
            "InvalidTargetCapacitySpecification",
            f"TotalTargetCapacity must be from 0 to {_TARGET_MAX}, not {total}",
        )
    return int(total)


def _policy(params: Parameters) -> TerminationPolicy | None:
    policy = params.get("ExcessCapacityTerminationPolicy")
    if policy is not None:
        _one_of("ExcessCapacityTerminationPolicy", policy, ("termination", "no-termination"))
    return cast("TerminationPolicy | None", policy)


def _spot_options(given: Parameters) -> dict[str, Any]:
    """Return them as EC2 answers: defaults filled in, a pool count only where it applies."""
    strategy = _as_answered(given.get("AllocationStrategy") or "lowestPrice")
    options = {
        **given,
        "AllocationStrategy": strategy,
        "InstanceInterruptionBehavior": given.get("InstanceInterruptionBehavior") or "terminate",
    }
    options.pop("InstancePoolsToUseCount", None)
    if strategy == "lowestPrice":
        options["InstancePoolsToUseCount"] = given.get("InstancePoolsToUseCount") or 1
    return options


def _on_demand_options(given: Parameters) -> dict[str, Any]:
    strategy = _as_answered(given.get("AllocationStrategy") or "lowestPrice")
    return {**given, "AllocationStrategy": strategy}


def _as_answered(strategy: str) -> str:
    """Return a strategy as EC2 answers it: `lowest-price` in its older spelling."""
    return "lowestPrice" if strategy == "lowest-price" else strategy


def _one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise Ec2Fault("InvalidParameterValue", f"Value ({value}) for parameter {name} is invalid.")
