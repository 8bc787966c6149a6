"""Where a living fleet may launch, changed without a word about its capacity."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import stamina

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.errors import translated
from reconciler.adapters.aws.repeating import change
from reconciler.model.errors import Conflict, NotFound
from reconciler.model.ids import FleetId, Region

MODIFYING_SECONDS_MAX: Final = 300.0
"""The patience that the Terraform provider's users have with a fleet that is `modifying`."""
FIRST_PAUSE_SECONDS: Final = 0.5
PAUSE_MAX_SECONDS: Final = 5.0


def set_pools(region: Region, fleet_id: FleetId, configs: Sequence[Mapping[str, Any]]) -> None:
    """Replace a fleet's launch template configs, and wait until that is in force.

    Args:
        region: Where the fleet is.
        fleet_id: The fleet, of type maintain.
        configs: `LaunchTemplateConfigs` as ModifyFleet takes them.

    Rights: ec2:ModifyFleet, ec2:DescribeFleets.
    Source: EC2 ModifyFleet reference (TargetCapacitySpecification is not required), read 2026-11.

    Raises:
        Conflict: The fleet stayed in state `modifying` for too long.
        PortError: EC2 does not take it.
    """
    with closing(Clients()) as clients:
        for attempt in _patiently():
            with attempt:
                change(
                    f"fleet {fleet_id}",
                    clients.ec2(region, changing=True).modify_fleet,
                    clients.attempts,
                    FleetId=fleet_id,
                    LaunchTemplateConfigs=list(configs),
                )
        for attempt in _patiently():
            with attempt:
                _assert_in_force(clients.ec2(region), fleet_id)


def _patiently() -> Any:
    return stamina.retry_context(
        on=Conflict,
        attempts=None,
        timeout=MODIFYING_SECONDS_MAX,
        wait_initial=FIRST_PAUSE_SECONDS,
        wait_max=PAUSE_MAX_SECONDS,
    )


def _assert_in_force(ec2: Any, fleet_id: FleetId) -> None:
    where = f"fleet {fleet_id}"
    with translated(where, changing=False):
        found = ec2.describe_fleets(FleetIds=[fleet_id])["Fleets"]
    if not found:
        raise NotFound(where, "is not there")
    if found[0].get("FleetState") == "modifying":
        raise Conflict(where, "is still being modified")
