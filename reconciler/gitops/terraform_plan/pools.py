"""Changes of where a live fleet may launch, to be sent to EC2 itself; reads a plan, pure.

Terraform's provider sends a target capacity along with every change of a fleet's types, subnets or
prices (`resourceFleetUpdate` of hashicorp/aws 5 and 6, read 2026-11): a second writer of capacity.
EC2's ModifyFleet needs none, so an apply asks EC2 itself for these changes, and for nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.gitops.terraform_plan.planned import FLEET, PlannedResource, fleets, resources
from reconciler.model.ids import FleetId, Region
from reconciler.ports.terraform import TerraformPlanJson
from reconciler.records.untrusted_json import mapping

POOLS = "launch_template_config"
_ALONG = frozenset({POOLS, "tags", "tags_all"})
"""Attributes that may change as well: tags reach EC2 without a capacity."""
_TEMPLATE = {
    "launch_template_id": "LaunchTemplateId",
    "launch_template_name": "LaunchTemplateName",
    "version": "Version",
}
_OVERRIDE = {
    "availability_zone": "AvailabilityZone",
    "instance_type": "InstanceType",
    "max_price": "MaxPrice",
    "priority": "Priority",
    "subnet_id": "SubnetId",
    "weighted_capacity": "WeightedCapacity",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolEdit:
    """Says where one live fleet may launch from now on."""

    address: str
    cluster: str
    region: Region
    fleet_id: FleetId
    configs: tuple[Mapping[str, Any], ...]
    """`LaunchTemplateConfigs` of ModifyFleet: they replace those that are in force."""


def pool_edits(plan: TerraformPlanJson) -> tuple[PoolEdit, ...]:
    """Return the updates of fleets that EC2 can make without a target capacity, by address."""
    by_id = {fleet.fleet_id: fleet for fleet in fleets(plan)}
    found = sorted(_updates(plan), key=lambda found: found[0].address)
    return tuple(
        PoolEdit(
            address=resource.address,
            cluster=by_id[fleet_id].tags_before.get("cluster", ""),
            region=Region(by_id[fleet_id].region),
            fleet_id=FleetId(fleet_id),
            configs=configs,
        )
        for resource, configs in found
        if (fleet_id := str(resource.before.get("id") or "")) in by_id and by_id[fleet_id].region
    )


def _updates(
    plan: TerraformPlanJson,
) -> Iterator[tuple[PlannedResource, tuple[Mapping[str, Any], ...]]]:
    # By entry, not by address: an object left by an interrupted replacement has the same address.
    for entry in plan.get("resource_changes", []):
        unknown = mapping(mapping(entry.get("change")).get("after_unknown"))
        for resource in resources({"resource_changes": [entry]}):
            changed = set(resource.changed)
            if resource.type != FLEET or resource.step != "update" or POOLS not in changed:
                continue
            if changed - _ALONG or _anything(unknown.get(POOLS)):
                continue
            configs = _configs(resource.after.get(POOLS))
            if configs:
                yield resource, configs


def _configs(blocks: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the configs in EC2's words; empty when there is a setting unknown to this program."""
    found = []
    for block in blocks if isinstance(blocks, list) else ():
        specifications = mapping(block).get("launch_template_specification") or [{}]
        template = _translated(mapping(specifications[0]), _TEMPLATE)
        overrides = [_translated(mapping(e), _OVERRIDE) for e in block.get("override") or []]
        if not template or not all(overrides):
            return ()
        # EC2 accepts the id or the name, and answers with both.
        if "LaunchTemplateId" in template:
            template.pop("LaunchTemplateName", None)
        found.append({"LaunchTemplateSpecification": template, "Overrides": overrides})
    return tuple(found)


def _translated(block: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    stated = {key: value for key, value in block.items() if value not in (None, "", 0, [], {})}
    return (
        {words[key]: stated[key] for key in sorted(stated)} if stated.keys() <= words.keys() else {}
    )


def _anything(unknown: Any) -> bool:
    """Return whether any part of a value is known only after the apply."""
    if isinstance(unknown, Mapping):
        return any(_anything(part) for part in unknown.values())
    if isinstance(unknown, Sequence):
        return any(_anything(part) for part in unknown)
    return bool(unknown)
