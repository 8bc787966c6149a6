"""Instance types and on-demand prices from the answers of EC2 and of the Price List API."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from reconciler.model.fleet import InstanceType, UsdPerHour
from reconciler.model.snapshot import Ignored
from reconciler.records.aws.fields import Wire, read_entries

_UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    InvalidOperation,
    RecursionError,
)
_MIB = 2**20
_HOURS = "Hrs"
_WANTED = {"capacitystatus": "Used", "marketoption": "OnDemand", "preInstalledSw": "NA"}
"""Attributes of the product for a plain Linux machine; an attribute that is not stated does not
matter."""


class _Cpu(Wire):
    default_v_cpus: int


class _Memory(Wire):
    size_in_mi_b: int


class _Processor(Wire):
    supported_architectures: tuple[str, ...]


class _Network(Wire):
    maximum_network_interfaces: int
    ipv4_addresses_per_interface: int


class _Gpu(Wire):
    count: int = 0
    manufacturer: str = ""


class _GpuInfo(Wire):
    gpus: tuple[_Gpu, ...] = ()


class _InstanceTypeWire(Wire):
    instance_type: str
    v_cpu_info: _Cpu
    memory_info: _Memory
    processor_info: _Processor
    network_info: _Network
    gpu_info: _GpuInfo | None = None


def decode_instance_types(
    answers: Iterable[Mapping[str, Any]], ignored: list[Ignored]
) -> dict[str, InstanceType]:
    """Return describe-instance-types by name, without prices; unreadable ones to `ignored`."""
    instance_types: dict[str, InstanceType] = {}
    for answer in answers:
        entries = answer.get("InstanceTypes")
        for wire in read_entries(
            entries, _InstanceTypeWire, "InstanceType", "InstanceType", ignored
        ):
            known = _instance_type(wire)
            if known is not None:
                instance_types[known.name] = known
    return instance_types


def _instance_type(wire: _InstanceTypeWire) -> InstanceType | None:
    """Return a type that can run Linux nodes; None for Macs and 32-bit machines."""
    arch = _arch(wire.processor_info.supported_architectures)
    network = wire.network_info
    pods = network.maximum_network_interfaces * (network.ipv4_addresses_per_interface - 1) + 2
    if arch is None or min(wire.v_cpu_info.default_v_cpus, wire.memory_info.size_in_mi_b) <= 0:
        return None
    gpus = wire.gpu_info.gpus if wire.gpu_info else ()
    return InstanceType(
        name=wire.instance_type,
        arch=arch,
        cpu_milli=wire.v_cpu_info.default_v_cpus * 1000,
        memory_bytes=wire.memory_info.size_in_mi_b * _MIB,
        pods_max=pods,
        gpus=sum(gpu.count for gpu in gpus if gpu.manufacturer.upper() == "NVIDIA"),
    )


def _arch(supported: Iterable[str]) -> Literal["amd64", "arm64"] | None:
    names = set(supported)
    if "x86_64" in names:
        return "amd64"
    return "arm64" if "arm64" in names else None


def decode_on_demand_prices(
    products: Iterable[str | Mapping[str, Any]], ignored: list[Ignored]
) -> dict[str, UsdPerHour]:
    """Return the lowest hourly price per type in the `PriceList` of GetProducts (JSON texts)."""
    found: dict[str, Decimal] = {}
    for text in products:
        try:
            product = json.loads(text) if isinstance(text, str) else text
            attributes = product["product"]["attributes"]
            name = str(attributes["instanceType"])
            if any(attributes.get(key, value) != value for key, value in _WANTED.items()):
                continue
            for price in _hourly(product["terms"].get("OnDemand", {})):
                found[name] = min(price, found.get(name, price))
        except _UNREADABLE:
            ignored.append(Ignored(code="unreadable", kind="Price"))
    return found


def _hourly(terms: Mapping[str, Any]) -> list[Decimal]:
    prices = [
        Decimal(dimension["pricePerUnit"]["USD"])
        for term in terms.values()
        for dimension in term["priceDimensions"].values()
        if dimension["unit"] == _HOURS and "USD" in dimension["pricePerUnit"]
    ]
    return [price.normalize() for price in prices if price.is_finite() and price > 0]


def with_prices(
    types: Mapping[str, InstanceType],
    on_demand: Mapping[str, UsdPerHour],
    spot: Mapping[str, UsdPerHour],
) -> dict[str, InstanceType]:
    """Return the types with the prices that are known."""
    return {
        name: replace(
            known, on_demand_usd_per_hour=on_demand.get(name), spot_usd_per_hour=spot.get(name)
        )
        for name, known in types.items()
    }
