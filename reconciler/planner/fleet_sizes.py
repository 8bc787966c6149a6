"""How large each fleet will be by the plan so far, and what its nodes cost.

Both are asked for each fleet that a node might be bought from, and one plan asks about hundreds of
fleets for each of a hundred nodes: the cost is kept as a sum instead of being added up again.
"""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from reconciler.model.ids import FleetKey, NodeName
from reconciler.planner.view import ClusterView


class FleetSizes:
    """The targets as planned so far, and the nodes that this plan ends.

    Args:
        view: The facts: targets start as they are now.
    """

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._targets = {key: status.current for key, status in view.statuses.items()}
        self._ended: Counter[FleetKey] = Counter()
        self._nano_usd, self._nano_usd_of = 0, Counter[str]()
        """What nodes cost per hour: all, and those of each sector."""
        for key in view.statuses:
            self._add(key, self._cost(key))

    @property
    def targets(self) -> Mapping[FleetKey, int]:
        """Return the target capacities as planned so far."""
        return MappingProxyType(self._targets)

    def size_of(self, key: FleetKey) -> int:
        """Return how many nodes a fleet will have; a new one comes on top of that.

        A target that somebody lowered ends no node: all that have joined count, except those that
        this plan ends.
        """
        return max(self._targets[key], self._view.statuses[key].joined - self._ended[key])

    def nano_usd_per_hour(self, sector: str = "") -> int:
        """Return what as many nodes as `size_of` cost in the sector's fleets; in all without one.

        A fleet whose target EC2 does not return now counts with its nodes.
        """
        return self._nano_usd_of[sector] if sector else self._nano_usd

    def set_target(self, key: FleetKey, to: int) -> None:
        """Change the target."""
        before = self._cost(key)
        self._targets[key] = to
        self._add(key, self._cost(key) - before)

    def end_node(self, key: FleetKey, name: NodeName | None, *, decrement: bool) -> None:
        """Count one node of the fleet as ended.

        Args:
            key: The fleet.
            name: The node: one that never joined is none of those that `size_of` counts.
            decrement: Whether its target is lowered with it.
        """
        before = self._cost(key)
        self._ended[key] += name in self._view.statuses[key].joined_nodes
        self._targets[key] -= decrement
        self._add(key, self._cost(key) - before)

    def _add(self, key: FleetKey, nano_usd: int) -> None:
        self._nano_usd += nano_usd
        self._nano_usd_of[self._view.statuses[key].settings.sector] += nano_usd

    def _cost(self, key: FleetKey) -> int:
        return self.size_of(key) * self._view.offers[key].nano_usd_per_hour
