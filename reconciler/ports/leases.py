"""The Lease with which replicas agree on the one that acts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """Who holds the Lease, as in coordination.k8s.io/v1."""

    holder: str = ""
    """Identity of the holder; empty when it is free."""
    duration_seconds: int = 1
    """How long others must see it unchanged before they may take it; at least 1."""
    acquired_at: datetime | None = None
    renewed_at: datetime | None = None
    """The holder's wall clock; others only check whether it changes."""
    transitions: int = 0
    """How often the holder changed."""
    version: str = ""
    """resourceVersion of the object that was read; empty: there is none yet."""


class Leases(Protocol):
    """Reads and writes the Lease `fleet-reconciler`."""

    def read(self) -> LeaseRecord | None:
        """Return the current Lease; None when there is none.

        Raises:
            PortError: It could not be read.
        """
        ...

    def write(self, record: LeaseRecord) -> LeaseRecord:
        """Write this record, if the Lease still has the version that the record names.

        Everything else on the object (annotations above all) stays as it is.

        Returns:
            The record with its new version.

        Raises:
            Conflict: Somebody else wrote it first.
            OutcomeUnknown: The answer was lost; read before writing again.
            PortError: Nothing was written.
        """
        ...
