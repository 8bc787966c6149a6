"""What is asked of a fleet before its whole status is known."""

from typing import Protocol

from reconciler.model.cluster import Node
from reconciler.model.fleet import Fleet
from reconciler.model.ids import FleetKey
from reconciler.planner.settings import FleetSettings


class FleetNodes(Protocol):
    """A fleet and its nodes: a part of `FleetStatus`."""

    @property
    def key(self) -> FleetKey:
        """Its name and region."""
        ...

    @property
    def settings(self) -> FleetSettings:
        """Its part of the config."""
        ...

    @property
    def live(self) -> Fleet | None:
        """Return the fleet as EC2 shows it; None when EC2 does not show it."""
        ...

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Its nodes, leaving ones not counted."""
        ...

    @property
    def joined_or_launching(self) -> int:
        """Return what it has or is owed."""
        ...

    @property
    def max(self) -> int | None:
        """Return the most that it may hold; None without a limit."""
        ...
