"""The instance types that the program knows, with source and date.

The package's own figures are in `catalogue.json` in this folder; spot prices there are estimates.
`reconciler catalogue refresh` writes a file of the same form from what EC2 says.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from reconciler.machine.plain_file import open_plain
from reconciler.model.errors import InputError, why_unreadable
from reconciler.model.fleet import InstanceType, PriceSource, UsdPerHour

_MIB: Final = 2**20
_NO_CATALOGUE: Final = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""The errors for a file of another form, or one that is nested too deeply to be read."""
FILE_MAX_BYTES: Final = 32 * 2**20
_PODS_MAX: Final = (
    "pods_max is the VPC CNI's figure without prefix delegation: "
    "ENIs x (IPv4 addresses per ENI - 1) + 2"
)


@dataclass(frozen=True, slots=True)
class Catalogue(Mapping[str, InstanceType]):
    """Instance types by name."""

    types: Mapping[str, InstanceType]
    region: str = "us-east-1"
    """Region of the prices."""
    as_of: str = ""
    """Date of the on-demand prices, shown where they are used."""
    sources: tuple[str, ...] = ()

    @property
    def prices(self) -> PriceSource:
        """Return region and date of its prices."""
        return PriceSource(region=self.region, as_of=self.as_of)

    def __getitem__(self, name: str) -> InstanceType:
        return self.types[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)


def load_catalogue(path: str | None = None) -> Catalogue:
    """Return the catalogue in a file of `reconciler catalogue refresh`; None: the package's own.

    Raises:
        InputError: The file cannot be read or is not a catalogue.
    """
    if path is None:
        return _own_catalogue()
    hint = "reconciler catalogue refresh --out FILE writes one"
    try:
        with open_plain(Path(path), links=True) as file:
            data = json.loads(file.read(FILE_MAX_BYTES))
        return parse_catalogue(data)
    except OSError as error:
        raise InputError(path, why_unreadable(error), hint) from error
    except _NO_CATALOGUE as error:
        raise InputError(path, "is not an instance catalogue", hint) from error


def catalogue_beside(named: str | None, directory: Path) -> str | None:
    """Return the config's own catalogue, by its path from the config's folder; else None.

    A path in the pod of the capacity loop does not exist here: the prices of the package are used
    instead, with their date and region.
    """
    if named is None:
        return None
    path = directory / named
    try:
        return str(path) if path.is_file() else None
    except OSError:  # in a folder that this user may not enter, or too long a name
        return None


@cache
def _own_catalogue() -> Catalogue:
    text = (files("reconciler.config") / "catalogue.json").read_text(encoding="utf-8")
    return parse_catalogue(json.loads(text))


def parse_catalogue(data: Mapping[str, Any]) -> Catalogue:
    """Return the catalogue from data in the form of `catalogue.json`.

    Raises:
        KeyError: Something is missing.
        TypeError, ValueError, AttributeError, ArithmeticError: Something is of another type.
    """
    return Catalogue(
        types={name: _instance_type(name, figures) for name, figures in data["types"].items()},
        region=data["region"],
        as_of=data["as_of"],
        sources=tuple(data["sources"]),
    )


def _instance_type(name: str, figures: Mapping[str, Any]) -> InstanceType:
    """Return one line of the catalogue."""
    return InstanceType(
        name=name,
        arch=figures["arch"],
        cpu_milli=figures["vcpu"] * 1000,
        memory_bytes=figures["memory_mib"] * _MIB,
        pods_max=figures["pods_max"],
        gpus=figures["gpus"],
        on_demand_usd_per_hour=_price(figures["on_demand_usd_per_hour"]),
        spot_usd_per_hour=_price(figures["spot_usd_per_hour"]),
    )


def _price(stated: str | None) -> UsdPerHour | None:
    """Return a price above zero; null means that none is known."""
    if stated is None:
        return None
    price = Decimal(stated)
    if not price.is_finite() or price <= 0:
        raise ValueError(f"{stated} is not a price")
    return price


def render_catalogue(catalogue: Catalogue) -> str:
    """Return the catalogue as `catalogue.json`: a line per type, sorted; deterministic."""
    lines = [
        f"    {json.dumps(name)}: {json.dumps(_figures(known))}"
        for name, known in sorted(catalogue.types.items())
    ]
    head = {"region": catalogue.region, "as_of": catalogue.as_of, "sources": catalogue.sources}
    opening = json.dumps(head, indent=2, ensure_ascii=False).removesuffix("\n}")
    return f'{opening},\n  "types": {{\n' + ",\n".join(lines) + "\n  }\n}\n"


def _figures(known: InstanceType) -> dict[str, Any]:
    on_demand, spot = known.on_demand_usd_per_hour, known.spot_usd_per_hour
    return {
        "arch": known.arch,
        "vcpu": known.cpu_milli // 1000,
        "memory_mib": known.memory_bytes // _MIB,
        "gpus": known.gpus,
        "pods_max": known.pods_max,
        "on_demand_usd_per_hour": None if on_demand is None else f"{on_demand:f}",
        "spot_usd_per_hour": None if spot is None else f"{spot:f}",
    }


def refreshed(
    before: Catalogue, types: Mapping[str, InstanceType], region: str, as_of: str
) -> Catalogue:
    """Return EC2's current data of a region, completed by the previous catalogue.

    A price that EC2 did not state is kept only when the previous one is of the same region.
    """
    same_region = before.region == region
    kept = {name: known for name, known in before.types.items() if name not in types}
    merged = {
        name: _completed(now, before.types.get(name) if same_region else None)
        for name, now in types.items()
    }
    sources = [
        (
            f"types, prices on demand and on the spot market of {region}: EC2 "
            "DescribeInstanceTypes, AWS Price List GetProducts and EC2 DescribeSpotPriceHistory "
            f"(latest price of the cheapest zone), {as_of}"
        ),
        _PODS_MAX,
    ]
    if kept:
        sources.append(
            f"{len(kept)} types that EC2 did not list in {region}: the catalogue of "
            f"{before.as_of} for {before.region}"
        )
    return Catalogue(types={**kept, **merged}, region=region, as_of=as_of, sources=tuple(sources))


def _completed(now: InstanceType, before: InstanceType | None) -> InstanceType:
    if before is None:
        return now
    on_demand, spot = now.on_demand_usd_per_hour, now.spot_usd_per_hour
    return replace(
        now,
        on_demand_usd_per_hour=before.on_demand_usd_per_hour if on_demand is None else on_demand,
        spot_usd_per_hour=before.spot_usd_per_hour if spot is None else spot,
    )
