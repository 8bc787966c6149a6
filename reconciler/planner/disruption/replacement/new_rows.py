"""The rows of new nodes that are tried in place of a node, and which of them take the same pods.

A sector may have hundreds of fleets that differ only in price, or in labels that no pod selects. A
node that cannot leave for one of them cannot leave for any other.
"""

from collections.abc import Hashable, Sequence

from reconciler.model.ids import FleetKey
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.node_rows import in_each_zone
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.simulation import RowSpec, Simulation


class NewRows:
    """The rows of one new node of each fleet; the answers are kept, as they are asked for often.

    Args:
        builder: The plan.
    """

    def __init__(self, builder: PlanBuilder) -> None:
        self._builder = builder
        self._specs: dict[FleetKey, list[RowSpec]] = {}
        self._alike: dict[FleetKey, Hashable] = {}

    def specs(self, key: FleetKey) -> Sequence[RowSpec]:
        """Return the row in each zone in which the node may start, and last in an unknown zone."""
        if key not in self._specs:
            row = self._builder.view.offers[key].row
            self._specs[key] = [*in_each_zone(row), row]
        return self._specs[key]

    def alike(self, key: FleetKey) -> Hashable:
        """Return a value that is equal for fleets whose rows take the same pods."""
        if key not in self._alike:
            sim = self._builder.sim
            self._alike[key] = tuple(_seen_by_pods(sim, spec) for spec in self.specs(key))
        return self._alike[key]


def _seen_by_pods(sim: Simulation, spec: RowSpec) -> Hashable:
    """Return everything by which a row of this spec may take other pods than another row."""
    places = tuple(
        topology.place_of(spec.variants)
        for name, topology in sim.topologies.items()
        if name != HOSTNAME
    )
    daemons = tuple(map(id, spec.daemons))  # which the view keeps alive
    allocatable = sim.allocatable_of(spec).tobytes()
    return sim.node_kind_of(spec), allocatable, spec.over_subscription, daemons, places
