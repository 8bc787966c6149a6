"""Describes a fleet's overrides as variables of the eks_fleet module; pure."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from reconciler.model.fleet_description import FleetDescription, OverrideDescription


def override_variables(fleet: FleetDescription, zone: str) -> dict[str, Any]:
    """Return the variables that make the fleet's overrides, in their order.

    Types, subnets and prices where the module makes the same overrides from them; else `overrides`,
    unchanged, as well.

    Args:
        fleet: The fleet.
        zone: The zone in its name; empty: none.
    """
    subnets = {fleet.zones[each]: each for each in fleet.subnet_ids if each in fleet.zones}
    prices = _prices(fleet.overrides) if fleet.spot else {}
    variables: dict[str, Any] = {"private_subnet_ids": subnets} if subnets else {}
    limits = set(prices.values())
    if len(limits) == 1 and set(prices) == set(fleet.instance_types):
        (limit,) = limits
        variables["max_price"] = limit
    elif prices:
        variables["max_prices"] = prices
    chosen = [subnets[each] for each in sorted(subnets) if zone in ("", each)]
    made = tuple(
        OverrideDescription(instance_type=each, subnet_id=subnet, max_price=prices.get(each))
        for each in fleet.instance_types
        for subnet in chosen
    )
    if made != fleet.overrides:
        variables["overrides"] = [
            {key: _whole(value) for key, value in asdict(override).items() if value is not None}
            for override in fleet.overrides
        ]
    return variables


def _prices(overrides: Sequence[OverrideDescription]) -> dict[str, str]:
    """Return price limits by instance type, of types with the same limit everywhere."""
    found: dict[str, set[str | None]] = {}
    for override in overrides:
        found.setdefault(override.instance_type or "", set()).add(override.max_price)
    return {
        name: price
        for name, limits in found.items()
        for price in limits
        if name and price and len(limits) == 1
    }


def _whole(value: Any) -> Any:
    """Return whole numbers as integers: EC2 answers priorities and weights with a decimal point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
