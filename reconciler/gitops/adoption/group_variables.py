"""Describes an Auto Scaling group as variables of the eks_group module; pure."""

from collections.abc import Mapping
from typing import Any

from reconciler.gitops.adoption.identity import Identity, own_tags
from reconciler.gitops.drift.live import group_tags
from reconciler.model.fleet_description import FleetDescription


def group_variables(group: FleetDescription) -> dict[str, Any]:
    """Return the variables with which the group launches the same instances in the same places."""
    settings = group.group
    if settings is None:
        return {}
    found = {
        "private_subnet_ids": {group.zones[each]: each for each in settings.subnet_ids},
        "mixed_instances_policy": None if settings.mixed else False,
        "on_demand_base_capacity": settings.on_demand_base if group.spot else 0,
        "on_demand_percentage_above_base_capacity": settings.on_demand_percentage
        if group.spot
        else 0,
        "max_price": settings.max_price if group.spot else "",
    }
    return {key: value for key, value in found.items() if value is False or value}


def group_tag_variables(
    group: FleetDescription,
    identity: Identity,
    size: Mapping[str, Any],
    variables: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the variable that keeps the group's tags, where the module would set others.

    Args:
        group: The group.
        identity: Its name in the config.
        size: Its own size in the config; empty: a built-in one.
        variables: Its other variables.
    """
    if group.group is None:
        return {}
    made = group_tags(
        identity.cluster,
        identity.fleet,
        {
            **variables,
            "tags": own_tags(group, identity),
            "spot": group.spot,
            "sector_label": identity.sector,
            "node_pool_size": identity.size,
            "node_pool_kind": identity.kind,
            "node_resources": size.get("extended", {}),
        },
    )
    if {(key, value, False) for key, value in made.items()} == set(group.group.tags):
        return {}
    return {
        "group_tags": [
            {"key": key, "value": value, "propagate_at_launch": propagated}
            for key, value, propagated in group.group.tags
        ]
    }
