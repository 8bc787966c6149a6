"""A sector config for the rules: its readable parts, each with its place."""

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.config.fleet_name import fleet_name, lifecycle_of
from reconciler.config.scalars import FALSE_TEXTS
from reconciler.config.tree import Mapping, Place, dotted, place_of, text_of
from reconciler.model.errors import Problem

Location = tuple[int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetNode:
    """A fleet in the tree."""

    location: Location
    sector_name: str
    sector: Mapping
    entry: Mapping

    @property
    def name(self) -> str | None:
        """Return `<sector>-<size>[-<zone>][-<lifecycle>]`; None without a size."""
        size, zone = self.entry.text("size"), self.entry.text("zone")
        if size is None:
            return None
        return fleet_name(self.sector_name, size, zone, self.entry.text("lifecycle"))

    @property
    def lifecycle(self) -> str:
        """Return `spot` or `on-demand` by `lifecycle` or `spot`; spot when neither is valid."""
        spot = (self.entry.text("spot") or "").lower() not in FALSE_TEXTS
        return self.entry.text("lifecycle") or lifecycle_of(spot=spot)

    @property
    def states_lifecycle(self) -> bool:
        """Return whether its lifecycle is part of its name."""
        return self.entry.text("lifecycle") is not None


@dataclass(frozen=True, slots=True)
class Document:
    """The tree with the name that the command line may have given the cluster."""

    root: Mapping
    cluster_override: str | None = None

    @property
    def cluster(self) -> str | None:
        """Return the cluster's name as far as it is known."""
        given = self.root.text("cluster") or self.root.text("cluster_name")
        return self.cluster_override or given

    def sectors(self) -> Iterator[tuple[str, Mapping]]:
        """Yield sector names with their mappings."""
        for name, entry in self.root.mapping("sectors").entries.items():
            if isinstance(entry.value, Mapping):
                yield name, entry.value

    def own_sizes(self) -> dict[str, Mapping]:
        """Return own sizes by name; one that is not a mapping counts as empty."""
        sizes = self.root.mapping("sizes")
        return {name: sizes.mapping(name) for name in sizes.entries}

    def fleets_of(self, name: str, sector: Mapping) -> Iterator[FleetNode]:
        """Yield the fleets of a sector that are mappings."""
        for index, item in sector.items("fleets"):
            if isinstance(item.value, Mapping):
                yield FleetNode(
                    location=("sectors", name, "fleets", index),
                    sector_name=name,
                    sector=sector,
                    entry=item.value,
                )

    def fleets(self) -> Iterator[FleetNode]:
        """Yield all fleets that are mappings."""
        for name, sector in self.sectors():
            yield from self.fleets_of(name, sector)

    def module_variables(self) -> Iterator[tuple[Location, Mapping]]:
        """Yield every mapping of module variables: those of a Region, a sector or a fleet too."""
        top = self.root.mapping("terraform")
        yield ("terraform",), top
        by_region = top.mapping("by_region")
        for region in by_region.entries:
            yield ("terraform", "by_region", region), by_region.mapping(region)
        for name, sector in self.sectors():
            yield ("sectors", name, "terraform"), sector.mapping("terraform")
        for fleet in self.fleets():
            yield (*fleet.location, "terraform"), fleet.entry.mapping("terraform")

    def regions_of(self, fleet: FleetNode) -> frozenset[str]:
        """Return the Regions as in `ResolvedFleet.regions`; none when nothing names any."""
        levels = (fleet.entry, fleet.sector, self.root)
        named = (
            {text_of(item.value) or "" for _, item in level.items("regions")} for level in levels
        )
        stated = next(filter(None, named), set[str]())
        zone = fleet.entry.text("zone")
        of_zone = {region for region in stated if zone and region and zone.startswith(region)}
        return frozenset(of_zone or stated)

    def place(self, location: Location) -> Place:
        """Return where the key or item at `location` was written."""
        return place_of(self.root, location)

    def problem(
        self, code: str, location: Location, message: str, *, severity: str = "error"
    ) -> Problem:
        """Return a fault, or a warning, at the key or item at `location`."""
        place = self.place(location)
        return Problem(
            line=place.line,
            column=place.column,
            path=dotted(location),
            code=code,
            message=message,
            severity=severity,
        )
