"""Hand-written plans of the fleets module, in the form of `terraform show -json`."""

from typing import Any

from reconciler.gitops.terraform_plan.planned import PlannedFleet, fleets

AWS = "registry.terraform.io/hashicorp/aws"


def fleet_arn(name: str, region: str = "us-west-2") -> str:
    """The ARN of a fleet."""
    return f"arn:aws:ec2:{region}:123456789012:fleet/fleet-{name}"


def fleet_attributes(
    name: str = "primary-small", target: int = 2, **changes: Any
) -> dict[str, Any]:
    """Attributes of a living aws_ec2_fleet."""
    return {
        "id": f"fleet-{name}",
        "arn": fleet_arn(name),
        "fulfilled_capacity": float(target),
        "launch_template_config": [
            {"override": [{"instance_type": "r5.xlarge"}, {"instance_type": "r4.xlarge"}]}
        ],
        "tags": {"cluster": "analytics", "fleet": name, "sector": "primary"},
        "target_capacity_specification": [
            {"default_target_capacity_type": "spot", "total_target_capacity": target}
        ],
        "terminate_instances": False,
        **changes,
    }


def group_attributes(name: str = "web-small", target: int = 2, **changes: Any) -> dict[str, Any]:
    """Attributes of a living aws_autoscaling_group."""
    tags = {"cluster": "analytics", "fleet": name, "sector": "web"}
    group = f"analytics-{name}"
    overrides = [{"instance_type": "c5.2xlarge"}, {"instance_type": "c4.2xlarge"}]
    return {
        "id": group,
        "arn": f"arn:aws:autoscaling:us-west-2:123456789012:autoScalingGroup:1:"
        f"autoScalingGroupName/{group}",
        "name": group,
        "min_size": 0,
        "max_size": 20,
        "desired_capacity": target,
        "vpc_zone_identifier": ["subnet-0aa", "subnet-0bb"],
        "mixed_instances_policy": [
            {
                "instances_distribution": [{"on_demand_percentage_above_base_capacity": 0}],
                "launch_template": [{"override": overrides}],
            }
        ],
        "tag": [{"key": k, "value": v, "propagate_at_launch": False} for k, v in tags.items()],
        **changes,
    }


def resource(
    kind: str,
    actions: list[str],
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    *,
    key: str = "primary-small",
) -> dict[str, Any]:
    """One entry of `resource_changes` inside the fleets module."""
    call = "group" if kind == "aws_autoscaling_group" else "fleet"
    module = f'module.fleets.module.{call}["{key}"]'
    return {
        "address": f"{module}.{kind}.this",
        "module_address": module,
        "mode": "managed",
        "type": kind,
        "name": "this",
        "provider_name": AWS,
        "change": {"actions": actions, "before": before, "after": after, "after_unknown": {}},
    }


def fleet_change(actions: list[str], name: str = "primary-small", **after: Any) -> dict[str, Any]:
    """A change of one fleet; `after` overrides its attributes."""
    before = None if actions == ["create"] else fleet_attributes(name)
    planned = None if actions == ["delete"] else fleet_attributes(name, **after)
    if planned is not None and before is None:
        del planned["id"], planned["arn"]
    return resource("aws_ec2_fleet", actions, before, planned, key=name)


def group_change(
    actions: list[str], name: str = "web-small", target: int = 2, **after: Any
) -> dict[str, Any]:
    """A change of one Auto Scaling group; `after` overrides its attributes."""
    before = None if actions == ["create"] else group_attributes(name, target)
    planned = None if actions == ["delete"] else group_attributes(name, target, **after)
    if planned is not None and before is None:
        del planned["id"]
    return resource("aws_autoscaling_group", actions, before, planned, key=name)


def template_change(before_ami: str, after_ami: str, name: str = "primary-small") -> dict[str, Any]:
    """A new AMI in one fleet's launch template."""
    return resource(
        "aws_launch_template",
        ["update"],
        {"id": "lt-1", "image_id": before_ami},
        {"id": "lt-1", "image_id": after_ami},
        key=name,
    )


def plan(*changes: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """A plan with these changes and a pinned provider."""
    provider = {
        "name": "aws",
        "full_name": AWS,
        "version_constraint": ">= 5.100.0, < 7.0.0",
        "expressions": {"region": {"constant_value": "us-west-2"}},
    }
    return {
        "format_version": "1.2",
        "resource_changes": list(changes),
        "configuration": {"provider_config": {"aws": provider}, "root_module": {}},
        **parts,
    }


def ended(key: str, **tags: str) -> PlannedFleet:
    """A fleet that a plan would end."""
    before = fleet_attributes(key, tags={"cluster": "analytics", "fleet": key, **tags})
    (found,) = fleets(plan(resource("aws_ec2_fleet", ["delete"], before, None, key=key)))
    return found
