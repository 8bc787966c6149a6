"""One reason why a node may not be disrupted."""

from datetime import datetime
from typing import NamedTuple


class Blocker(NamedTuple):
    """One reason why a node may not be disrupted."""

    code: str
    """A stable code, shown as `kept[].code`."""
    detail: str
    """A sentence for people in which the node is `it`."""
    until: datetime | None = None
    """When the reason ends at the latest; None if time alone does not end it."""
