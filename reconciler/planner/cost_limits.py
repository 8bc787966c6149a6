"""The cost of targets, and what `max_hourly_usd` leaves for more."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.new_nodes.new_node import NewNode
from reconciler.planner.money import nano_usd


def extra_nano_usd(node: NewNode, instead_of: NewNode) -> int:
    """Return by how much a node costs more per hour than another, in nano-USD.

    0 if it is cheaper, or if a price is unknown.
    """
    if not (node.priced and instead_of.priced):
        return 0
    return max(0, node.nano_usd_per_hour - instead_of.nano_usd_per_hour)


def cost_of_targets(builder: PlanBuilder, fleets: Iterable[FleetStatus]) -> int:
    """Return what the targets planned so far cost per hour, in nano-USD."""
    return sum(
        builder.targets[s.key] * builder.view.offers[s.key].nano_usd_per_hour for s in fleets
    )


def _spent(builder: PlanBuilder, fleets: Sequence[FleetStatus]) -> int:
    """Return the cost of targets, and of nodes of fleets whose targets EC2 does not return now."""
    unseen = (s for s in fleets if s.out_of_reach)
    nodes = sum(s.joined * builder.view.offers[s.key].nano_usd_per_hour for s in unseen)
    return nodes + cost_of_targets(builder, (s for s in fleets if not s.out_of_reach))


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLimit:
    """A `max_hourly_usd` that applies to a sector's fleets, and what is spent of it."""

    of_sector: str
    """The sector whose limit it is; empty for the cluster's."""
    nano_usd_per_hour: int
    spent: int
    """The cost of the targets that it counts, as planned so far."""

    @property
    def left(self) -> int:
        """Return what may still be spent; 0, which free nodes cost, also beyond the limit."""
        return max(0, self.nano_usd_per_hour - self.spent)


def cost_limits(builder: PlanBuilder, *sectors: str) -> list[CostLimit]:
    """Return the cluster's limit and those of the sectors, if the config sets them."""
    view = builder.view
    fleets = view.inventory.fleets
    limits = [("", view.settings.usd_per_hour_max)]
    limits += [(s.name, s.usd_per_hour_max) for s in view.settings.sectors if s.name in sectors]
    return [
        CostLimit(
            of_sector=name,
            nano_usd_per_hour=nano_usd(limit),
            spent=_spent(builder, [s for s in fleets if not name or s.settings.sector == name]),
        )
        for name, limit in limits
        if limit is not None
    ]
