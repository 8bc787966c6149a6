"""What is read from a fleet before its whole status is known."""

from typing import Protocol

from reconciler.model.cluster import Node
from reconciler.model.fleet import Fleet
from reconciler.model.ids import FleetKey
from reconciler.planner.settings import FleetSettings


class FleetNodes(Protocol):
    """A fleet and its nodes: a part of `FleetStatus`."""

    @property
    def key(self) -> FleetKey:
        """Return its name and region."""
        ...

    @property
    def settings(self) -> FleetSettings:
        """Return its settings."""
        ...

    @property
    def live(self) -> Fleet | None:
        """Return the fleet as EC2 shows it; None if EC2 does not show it."""
        ...

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return its nodes, without leaving ones."""
        ...

    @property
    def joined_or_launching(self) -> int:
        """Return how many nodes it has or is owed."""
        ...

    @property
    def max(self) -> int | None:
        """Return its maximum; None without a limit."""
        ...
