"""One reason why a node may not be disrupted."""

from datetime import datetime
from typing import NamedTuple


class Blocker(NamedTuple):
    """States one reason why a node stays."""

    code: str
    """The stable word, shown as `kept[].code`."""
    detail: str
    """A sentence for people, about the node as `it`."""
    until: datetime | None = None
    """When it no longer holds, whatever else happens; None when time alone does not end it."""
