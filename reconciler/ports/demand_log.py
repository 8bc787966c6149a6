"""A log of what a cluster was asked to run."""

from datetime import datetime
from typing import Protocol


class DemandLog(Protocol):
    """An append-only log of lines, with one part per day."""

    def append(self, at: datetime, lines: bytes) -> bool:
        """Append whole lines to the part of this time's day; return at once.

        False: they were not accepted, as earlier lines are still being written; the caller tries
        again later.
        """
        ...
