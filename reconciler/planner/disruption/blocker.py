"""One reason why a node may not be disrupted."""

from typing import NamedTuple


class Blocker(NamedTuple):
    """One reason why a node stays."""

    code: str
    """The stable word, shown as `kept[].code`."""
    detail: str
    """A sentence for people, about the node as `it`."""
