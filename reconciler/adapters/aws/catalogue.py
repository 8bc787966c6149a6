"""Reads instance types and their prices in one region from EC2."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from typing import Any, Final

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.errors import translated
from reconciler.model.errors import Forbidden, InputError, NotFound, PortError
from reconciler.model.fleet import InstanceType
from reconciler.model.ids import Region
from reconciler.model.snapshot import Ignored
from reconciler.records.aws import decode_spot_prices
from reconciler.records.aws.catalogue import (
    decode_instance_types,
    decode_on_demand_prices,
    with_prices,
)
from reconciler.records.aws.prices import LINUX_PRODUCTS

PRICING_REGION: Final = Region("us-east-1")
"""The region whose Price List API answers for all regions."""
ITEMS_MAX: Final = 100_000
"""The limit of each list; EC2 has about a thousand types in six zones."""
PRODUCT: Final = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
RIGHTS: Final = {
    "describe_instance_types": "ec2:DescribeInstanceTypes",
    "describe_spot_price_history": "ec2:DescribeSpotPriceHistory",
    "get_products": "pricing:GetProducts",
}
"""The rights that each call needs."""
_UNTOUCHED: Final = "the catalogue is as it was"


def read_instance_types(
    region: Region, now: datetime, ignored: list[Ignored]
) -> dict[str, InstanceType]:
    """Return instance types of a region with their on-demand and latest spot prices.

    Args:
        region: The region.
        now: The wall clock: spot prices are those of this moment.
        ignored: Collects entries that could not be read.

    Raises:
        PortError: EC2 or the Price List API did not answer.
        NotFound: EC2 listed no types at all.
        InputError: Nothing of an answer could be read.
    """
    with closing(Clients()) as clients:
        # The call whose rights are most often missing comes first.
        products = _products(clients.pricing(PRICING_REGION), region)
        on_demand = decode_on_demand_prices(products, ignored)
        _assert_readable(f"get_products {PRICING_REGION}", on_demand, ignored)
        ec2, unreadable = clients.ec2(region), list[Ignored]()
        pages = _pages(ec2, "describe_instance_types", region, {})
        types = decode_instance_types(pages, unreadable)
        where = f"describe_instance_types {region}"
        _assert_readable(where, types, unreadable)
        if not types:
            hint = f"check --region and AWS_ENDPOINT_URL; {_UNTOUCHED}"
            raise NotFound(where, "listed no instance types", hint)
        ignored += unreadable
        history = {
            "StartTime": now,
            "EndTime": now,
            "ProductDescriptions": [*LINUX_PRODUCTS],
        }
        pages = _pages(ec2, "describe_spot_price_history", region, history)
        spot = decode_spot_prices(((region, page) for page in pages), ignored)
    return with_prices(types, on_demand, {name: price for (_, name), price in spot.items()})


def _assert_readable(where: str, found: Mapping[str, Any], ignored: list[Ignored]) -> None:
    """Refuse an answer in which every entry is unreadable; an empty answer is accepted."""
    if ignored and not found:
        raise InputError(
            where,
            f"none of its {len(ignored)} entries can be read",
            f"check AWS_ENDPOINT_URL, or use a newer version of this program; {_UNTOUCHED}",
        )


def _products(pricing: Any, region: Region) -> Iterator[str]:
    """Yield products of the region as JSON texts."""
    wanted = {**PRODUCT, "regionCode": region}
    filters = [{"Type": "TERM_MATCH", "Field": k, "Value": v} for k, v in wanted.items()]
    arguments = {"ServiceCode": "AmazonEC2", "FormatVersion": "aws_v1", "Filters": filters}
    for page in _pages(pricing, "get_products", PRICING_REGION, arguments):
        for product in page.get("PriceList", ()):
            yield product if isinstance(product, str) else json.dumps(product)


def _pages(
    client: Any, operation: str, region: Region, arguments: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield every page of a list, up to `ITEMS_MAX` entries."""
    try:
        with translated(f"{operation} {region}", changing=False):
            paginator = client.get_paginator(operation)
            yield from paginator.paginate(**arguments, PaginationConfig={"MaxItems": ITEMS_MAX})
    except PortError as error:
        raise type(error)(error.where, error.what, _remedy(operation, error)) from error


def _remedy(operation: str, error: PortError) -> str:
    """Return what to do about a failed call; nothing repeats it, as a person started it."""
    otherwise = "check the network, proxies and AWS_ENDPOINT_URL, and try again"
    if isinstance(error, Forbidden):
        otherwise = f"it takes the right {RIGHTS[operation]}"
    return f"{error.hint or otherwise}; {_UNTOUCHED}"
