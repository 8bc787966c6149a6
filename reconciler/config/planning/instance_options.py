"""What an instance type of a fleet offers and costs: by the config, EC2 and the catalogue."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from reconciler.config.fleets import OwnSize
from reconciler.config.resolve import ResolvedFleet
from reconciler.model.cluster import Resources
from reconciler.model.fleet import InstanceOption, InstanceType
from reconciler.model.frozen import FrozenMap

KUBELET_PODS_MAX: Final = 110
"""kubelet's own default, for instance types that the catalogue does not know."""
_GPU: Final = "nvidia.com/gpu"


def instance_option(
    fleet: ResolvedFleet,
    name: str,
    catalogue: Mapping[str, InstanceType],
    spot_usd_per_hour: Decimal | None = None,
) -> InstanceOption:
    """Return one instance type that a fleet may launch, with its resources and price.

    An own size states its nodes' resources; otherwise the catalogue does, or for unknown types the
    built-in size.

    Args:
        fleet: The fleet.
        name: The instance type.
        catalogue: Instance types by name.
        spot_usd_per_hour: EC2's spot price, when EC2 was asked.
    """
    known, size = catalogue.get(name), fleet.own_size
    stated = size if size is not None and name in size.instance_types else None
    return InstanceOption(
        instance_type=name,
        resources=_resources(fleet, stated, known),
        usd_per_hour=_price(fleet, stated, known, spot_usd_per_hour),
        arch=(stated and stated.arch) or (known.arch if known else "amd64"),
    )


def _resources(
    fleet: ResolvedFleet, stated: OwnSize | None, known: InstanceType | None
) -> Resources:
    """Return resources of the bare machine: cpu, memory, pods, devices."""
    basis = stated or known or fleet.own_size or fleet.built_in_size
    amounts: dict[str, int] = {}
    if basis is not None:
        amounts = {"cpu": basis.cpu_milli, "memory": basis.memory_bytes}
    if stated is not None and "extended" in stated.model_fields_set:
        amounts |= {k: v for k, v in stated.extended.items() if v}
    elif known is not None and known.gpus:
        amounts[_GPU] = known.gpus
    amounts["pods"] = _pods(fleet, stated, known)
    return FrozenMap(amounts)


def _pods(fleet: ResolvedFleet, stated: OwnSize | None, known: InstanceType | None) -> int:
    """Return pod slots: by the size or the module variable, else by the ENI limit."""
    if stated is not None and stated.pods is not None:
        return stated.pods
    by_variable = int(fleet.terraform.get("max_pods") or 0)
    return by_variable or (known.pods_max if known else KUBELET_PODS_MAX)


def _price(
    fleet: ResolvedFleet,
    stated: OwnSize | None,
    known: InstanceType | None,
    market: Decimal | None,
) -> Decimal | None:
    """Return USD per hour: the fleet's, its size's, EC2's or the catalogue's; None: unknown."""
    if fleet.entry.price_usd_per_hour is not None:
        return fleet.entry.price_usd_per_hour
    if fleet.entry.spot:
        price = stated.spot_price_usd_per_hour if stated else None
        fallback = market or (known.spot_usd_per_hour if known else None)
    else:
        price = stated.price_usd_per_hour if stated else None
        fallback = known.on_demand_usd_per_hour if known else None
    return fallback if price is None else price
