"""The Lease by which replicas agree on who acts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """Who holds the Lease, as coordination.k8s.io/v1 says it."""

    holder: str = ""
    """Identity of the holder; empty when it is free."""
    duration_seconds: int = 1
    """How long others must see it unchanged before they may take it; 1 or more."""
    acquired_at: datetime | None = None
    renewed_at: datetime | None = None
    """The holder's wall clock; others only look at whether it changes."""
    transitions: int = 0
    """How often the holder changed."""
    version: str = ""
    """resourceVersion of the object that was read; empty: there is none yet."""


class Leases(Protocol):
    """Where the Lease `fleet-reconciler` is kept."""

    def read(self) -> LeaseRecord | None:
        """The Lease as it is now; None when there is none.

        Raises:
            PortError: It could not be read.
        """
        ...

    def write(self, record: LeaseRecord) -> LeaseRecord:
        """Make the Lease say this, if it is still the version that the record names.

        Everything else on the object (annotations above all) stays as it is.

        Returns:
            The record with its new version.

        Raises:
            Conflict: Someone was faster.
            OutcomeUnknown: The answer was lost; read before writing again.
            PortError: Nothing was written.
        """
        ...
