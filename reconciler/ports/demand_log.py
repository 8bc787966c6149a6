"""Keeping what a cluster was asked to run."""

from datetime import datetime
from typing import Protocol


class DemandLog(Protocol):
    """An append-only log of lines, a part for each day."""

    def append(self, at: datetime, lines: bytes) -> bool:
        """Keep whole lines in the part of this time's day; returns at once.

        False: they were not taken, because lines before them are still being written. The caller
        tells the same again later.
        """
        ...
