"""Decodes spot prices of describe-spot-price-history."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from reconciler.model.fleet import UsdPerHour
from reconciler.model.ids import Region
from reconciler.model.snapshot import Ignored
from reconciler.records.aws.fields import Wire, moment_of, read_entries

LINUX_PRODUCTS: Final = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
"""The products whose prices are those of nodes: others, such as `SUSE Linux`, include a licence."""


class _SpotPriceWire(Wire):
    instance_type: str
    spot_price: str
    timestamp: Any
    availability_zone: str = ""
    product_description: str = ""


def decode_spot_prices(
    answers: Iterable[tuple[Region, Mapping[str, Any]]], ignored: list[Ignored] | None = None
) -> dict[tuple[Region, str], UsdPerHour]:
    """Return the latest Linux price per region and type, in its cheapest zone.

    Entries that cannot be read or are not a price above zero go to `ignored`.
    """
    problems = ignored if ignored is not None else []
    latest: dict[tuple[Region, str, str], tuple[datetime, Decimal]] = {}
    for region, answer in answers:
        history = answer.get("SpotPriceHistory")
        for wire in read_entries(history, _SpotPriceWire, "SpotPrice", "InstanceType", problems):
            if wire.product_description and wire.product_description not in LINUX_PRODUCTS:
                continue
            found = _price(wire)
            if found is None:
                name = wire.instance_type
                problems.append(Ignored(code="unreadable", kind="SpotPrice", name=name))
                continue
            key = region, wire.instance_type, wire.availability_zone
            latest[key] = max(found, latest.get(key, found))
    cheapest: dict[tuple[Region, str], Decimal] = {}
    for (region, instance_type, _), (_, price) in sorted(latest.items()):
        place = region, instance_type
        cheapest[place] = min(price, cheapest.get(place, price))
    return cheapest


def _price(wire: _SpotPriceWire) -> tuple[datetime, Decimal] | None:
    try:
        price, at = Decimal(wire.spot_price), moment_of(wire.timestamp)
    except (InvalidOperation, ValueError, OverflowError):
        return None
    return (at, price) if at is not None and price.is_finite() and price > 0 else None
