"""Finds the config's name for a fleet or group of EC2; pure."""

from collections.abc import Mapping
from dataclasses import replace

from reconciler.model.fleet import CLUSTER_TAG, FLEET_TAG, Fleet


def named_fleet(fleet: Fleet, groups: Mapping[str, str], cluster: str) -> Fleet | None:
    """Return the fleet with its name in the config; None for foreign groups with such tags.

    Args:
        fleet: The fleet as EC2 or Auto Scaling lists it.
        groups: Names of fleets by the group that the config names for each.
        cluster: The cluster of the config.
    """
    if fleet.provider == "ec2-fleet":
        return fleet
    if fleet.id in groups:
        return replace(fleet, name=groups[fleet.id])
    ours = fleet.tags.get(CLUSTER_TAG) == cluster and FLEET_TAG in fleet.tags
    return fleet if ours else None
