"""What a warning may look at: the config, its places in the file, and the catalogue."""

from collections.abc import Mapping
from dataclasses import dataclass

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
        """Every fleet with its place, in file order."""
        return tuple(written_fleets(self.document, self.config))

    def warning(self, code: str, location: Location, message: str) -> Problem:
        """A warning at the key or item at `location`."""
        return self.document.problem(code, location, message, severity="warning")
