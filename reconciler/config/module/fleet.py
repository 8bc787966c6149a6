"""One rendered fleet: its resolved values, and their places in the file."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from reconciler.config.resolve import ResolvedFleet, home_region_of, resolve_fleets
from reconciler.config.rules.document import Document, FleetNode, Location
from reconciler.config.schema import SectorConfig
from reconciler.model.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFleet:
    """A fleet with its resolved values and its place in the file."""

    document: Document
    node: FleetNode
    fleet: ResolvedFleet

    @property
    def further_region(self) -> str | None:
        """Return the Region that this is about; None for the home Region."""
        region = self.fleet.region
        return None if region == home_region_of(self.fleet.config) else region

    def value(self, key: str) -> Any:
        """Return the module variable in force; None when no level states it."""
        return self.fleet.terraform.get(key)

    def text(self, key: str) -> str:
        """Return the module variable in force as a text; empty when no level states it."""
        return str(self.value(key) or "")

    def place_of(self, key: str) -> Location:
        """Return where a module variable is written: the nearest level; the fleet without one."""
        sector: Location = ("sectors", self.fleet.sector_name, "terraform")
        top = self.document.root.mapping("terraform")
        region = str(self.fleet.region or "")
        levels = (
            ((*self.node.location, "terraform"), self.node.entry.mapping("terraform")),
            (sector, self.node.sector.mapping("terraform")),
            (("terraform", "by_region", region), top.mapping("by_region").mapping(region)),
            (("terraform",), top),
        )
        for location, mapping in levels:
            if mapping.states(key):
                return (*location, key)
        return self.node.location

    def problem(self, code: str, key: str, message: str) -> Problem:
        """Return a fault at the place of a module variable."""
        return self.document.problem(code, self.place_of(key), message)


def written_fleets(document: Document, config: SectorConfig) -> Iterator[WrittenFleet]:
    """Yield every fleet of a config whose single values are valid, in file order."""
    for node, fleet in zip(document.fleets(), resolve_fleets(config), strict=True):
        yield WrittenFleet(document=document, node=node, fleet=fleet)


def rendered_fleets(document: Document, config: SectorConfig) -> Iterator[WrittenFleet]:
    """Yield the fleets that Terraform makes, once for each Region that they are made in."""
    for written in written_fleets(document, config):
        if written.fleet.is_rendered:
            for region in written.fleet.rendered_regions:
                yield replace(written, fleet=written.fleet.in_region(region))
