"""The cost of targets, and what `max_hourly_usd` leaves for more."""

from collections.abc import Iterable
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLimit:
    """A `max_hourly_usd` that applies to a sector's fleets, and what is spent of it."""

    of_sector: str
    """The sector whose limit it is; empty for the cluster's."""
    nano_usd_per_hour: int
    spent: int
    """What the fleets that it counts cost as planned so far: their targets, or their nodes where
    these are more."""

    @property
    def left(self) -> int:
        """Return what may still be spent; 0, which free nodes cost, also beyond the limit."""
        return max(0, self.nano_usd_per_hour - self.spent)


def cost_limits(builder: PlanBuilder, *sectors: str) -> list[CostLimit]:
    """Return the cluster's limit and those of the sectors, if the config sets them."""
    settings = builder.view.settings
    limits = [("", settings.usd_per_hour_max)]
    limits += [(s.name, s.usd_per_hour_max) for s in settings.sectors if s.name in sectors]
    return [
        CostLimit(
            of_sector=name,
            nano_usd_per_hour=nano_usd(limit),
            spent=builder.sizes.nano_usd_per_hour(name),
        )
        for name, limit in limits
        if limit is not None
    ]
