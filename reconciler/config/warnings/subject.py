"""What a warning may look at: the config, its places in the file, and the catalogue."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.config.module.fleet import WrittenFleet, written_fleets
from reconciler.config.rules.document import Document, Location
from reconciler.config.schema import SectorConfig
from reconciler.model.errors import Problem
from reconciler.model.fleet import InstanceType


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A config without faults, as warnings read it."""

    document: Document
    config: SectorConfig
    catalogue: Mapping[str, InstanceType]

    @property
    def fleets(self) -> tuple[WrittenFleet, ...]:
        """Return every fleet with its place, in file order."""
        return tuple(written_fleets(self.document, self.config))

    @property
    def fleets_by_region(self) -> tuple[WrittenFleet, ...]:
        """Return the same, once for each Region in which Terraform makes it."""
        return tuple(
            replace(written, fleet=written.fleet.in_region(region))
            for written in self.fleets
            for region in (written.fleet.rendered_regions if written.fleet.is_rendered else (None,))
        )

    def warning(self, code: str, location: Location, message: str) -> Problem:
        """Return a warning at the key or item at `location`."""
        return self.document.problem(code, location, message, severity="warning")
