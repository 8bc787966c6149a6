"""The instance types that the package knows, with the source and date of what it knows.

The figures are in `catalogue.json` beside this file; spot prices there are estimates.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Final

from reconciler.model.fleet import InstanceType

_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Catalogue(Mapping[str, InstanceType]):
    """Instance types by name."""

    types: Mapping[str, InstanceType]
    region: str = "us-east-1"
    """Region of the prices."""
    as_of: str = ""
    """Date of the on-demand prices, to be shown where they are used."""
    sources: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> InstanceType:
        return self.types[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)


@cache
def load_catalogue() -> Catalogue:
    """The catalogue in the package."""
    text = (files("reconciler.config") / "catalogue.json").read_text(encoding="utf-8")
    return parse_catalogue(json.loads(text))


def parse_catalogue(data: Mapping[str, Any]) -> Catalogue:
    """The catalogue from the form that `catalogue.json` has.

    Raises:
        KeyError: Something is missing; the file is part of the package and must be whole.
    """
    return Catalogue(
        types={name: _instance_type(name, figures) for name, figures in data["types"].items()},
        region=data["region"],
        as_of=data["as_of"],
        sources=tuple(data["sources"]),
    )


def _instance_type(name: str, figures: Mapping[str, Any]) -> InstanceType:
    """One line of the catalogue."""
    return InstanceType(
        name=name,
        arch=figures["arch"],
        cpu_milli=figures["vcpu"] * 1000,
        memory_bytes=figures["memory_mib"] * _MIB,
        pods_max=figures["pods_max"],
        gpus=figures["gpus"],
        on_demand_usd_per_hour=Decimal(figures["on_demand_usd_per_hour"]),
        spot_usd_per_hour=Decimal(figures["spot_usd_per_hour"]),
    )
