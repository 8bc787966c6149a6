"""One reason why a node may not be disrupted."""

from typing import NamedTuple

VOLUNTARY = frozenset({"protected", "not-ready"})
"""Codes of blockers that hold only what could be left undone; a node that EC2 takes away goes
all the same."""


class Blocker(NamedTuple):
    """One reason why a node stays."""

    code: str
    """The stable word, shown as `kept[].code`."""
    detail: str
    """A sentence for people, about the node as `it`."""

    @property
    def voluntary(self) -> bool:
        """Whether it holds voluntary disruptions only."""
        return self.code in VOLUNTARY
