"""Makes variables with which Terraform does not touch fleets that left the config; pure.

`terraform plan -target` includes every fleet that is no longer in the variable `fleets`, whatever
the targets are: with a new image for another fleet it would also end a fleet that still has nodes,
or its launch template. So such a fleet stays in the variable until it may be removed. As it is not
a target, Terraform does not compare its values with EC2; they only have to be valid.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from reconciler.gitops.rendering.render import TFVARS
from reconciler.gitops.terraform_plan.planned import PlannedFleet
from reconciler.model.errors import Refused

_ADDRESS: Final = re.compile(
    r"module\.fleets\.module\.(?:fleet(?=.*\.aws_ec2_fleet)|group(?=.*\.aws_autoscaling_group))"
    r'\["(.+)"\]\.\w+\.this'
)


def kept_variables(tfvars: bytes, kept: Sequence[PlannedFleet]) -> bytes:
    """Return the root module's variables with these fleets added, as JSON.

    Args:
        tfvars: The rendered variables.
        kept: Fleets that a plan would end; those that are in the variables are unchanged.

    Raises:
        Refused: The variables cannot be read, or a fleet is not of the rendered root module.
    """
    try:
        variables: dict[str, Any] = json.loads(tfvars)
        fleets = dict(variables["fleets"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Refused(TFVARS, "cannot be read: render it again") from error
    for fleet in kept:
        key = _key(fleet)
        if key not in fleets:
            fleets[key] = _entry(key, fleet, fleets)
    return json.dumps({**variables, "fleets": fleets}, sort_keys=True).encode()


def _key(fleet: PlannedFleet) -> str:
    """Return the fleet's key in the variable `fleets`."""
    found = _ADDRESS.fullmatch(fleet.address)
    if found is None:
        raise Refused(fleet.address, "is not a fleet of a rendered root module: apply it by itself")
    key: str = json.loads(f'"{found[1]}"')
    return key


def _entry(key: str, fleet: PlannedFleet, others: Mapping[str, Any]) -> dict[str, Any]:
    """Return values that the modules accept for a fleet of this key."""
    sector, size, zone = _parts(key, fleet)
    kinds = [each["node_pool_kind"] for each in others.values() if each["sector_label"] == sector]
    return {
        "sector_label": sector,
        "node_pool_size": size,
        "zone": zone,
        # A sector has one kind.
        "node_pool_kind": kinds[0] if kinds else fleet.tags_before.get("kind", "memory"),
        "instance_types": ["m5.large"],
        "ami": "ami-00000000",
        "security_group_id": "sg-00000000",
        "private_subnet_ids": {zone or "us-west-2a": "subnet-00000000"},
        # In the fleets that replace it, its size may be divided by zone.
        "departing": True,
        **({"auto_scaling_group": fleet.fleet_id} if fleet.provider == "asg" else {}),
    }


def _parts(key: str, fleet: PlannedFleet) -> tuple[str, str, str]:
    """Return sector, size and zone that make the key, from the fleet's tags when they match."""
    sector, size = fleet.tags_before.get("sector", ""), fleet.tags_before.get("size", "")
    start = f"{sector}-{size}"
    if sector and size and (key == start or key.startswith(f"{start}-")):
        return sector, size, key[len(start) + 1 :]
    sector, _, size = key.rpartition("-")
    return sector, size, ""
