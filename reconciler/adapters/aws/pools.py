"""Changes where a live fleet may launch, without sending a capacity."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.errors import translated
from reconciler.adapters.aws.retries import change
from reconciler.model.errors import Conflict
from reconciler.model.ids import FleetId, Region

LOOKS_MAX: Final = 60
PAUSE_SECONDS: Final = 1.0
"""A fleet is `modifying` for seconds, at any time, as the capacity loop scales it."""


def set_pools(
    region: Region,
    fleet_id: FleetId,
    configs: Sequence[Mapping[str, Any]],
    pause: Callable[[float], None],
) -> None:
    """Replace a fleet's launch template configs, and wait until EC2 shows them.

    Args:
        region: Where the fleet is.
        fleet_id: The fleet, of type maintain.
        configs: `LaunchTemplateConfigs` as ModifyFleet takes them.
        pause: Waits for this many seconds.

    Rights: ec2:ModifyFleet, ec2:DescribeFleets.
    Source: EC2 ModifyFleet reference (TargetCapacitySpecification is not required), read 2026-11.

    Raises:
        Conflict: The fleet could not be modified for too long, or EC2 accepted the change and does
            not show it.
        PortError: EC2 does not accept it.
    """
    with closing(Clients()) as clients:
        for left in reversed(range(LOOKS_MAX)):
            try:
                change(
                    f"fleet {fleet_id}",
                    clients.ec2(region, changing=True).modify_fleet,
                    clients.attempts,
                    FleetId=fleet_id,
                    # EC2's default is to terminate instances over the target; this change must not.
                    ExcessCapacityTerminationPolicy="no-termination",
                    LaunchTemplateConfigs=list(configs),
                )
                break
            except Conflict:
                if not left:
                    raise
                pause(PAUSE_SECONDS)
        for _ in range(LOOKS_MAX):
            if _in_force(clients.ec2(region), fleet_id, configs):
                return
            pause(PAUSE_SECONDS)
        what = f"EC2 took its new pools and does not show them after {LOOKS_MAX} looks"
        raise Conflict(f"fleet {fleet_id}", what)


def _in_force(ec2: Any, fleet_id: FleetId, configs: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether EC2 shows the configs, or the fleet is not being modified any more."""
    with translated(f"fleet {fleet_id}", changing=False):
        found = ec2.describe_fleets(FleetIds=[fleet_id])["Fleets"]
    if not found or found[0].get("FleetState") != "modifying":
        return True
    return _pools(found[0].get("LaunchTemplateConfigs", [])) == _pools(configs)


def _pools(configs: Sequence[Mapping[str, Any]]) -> set[tuple[str, ...]]:
    words = ("InstanceType", "SubnetId", "AvailabilityZone", "MaxPrice")
    return {
        tuple(str(override.get(word, "")) for word in words)
        for config in configs
        for override in config.get("Overrides", [])
    }
