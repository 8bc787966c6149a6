"""Money in billionths of a dollar per hour, so that sums and comparisons are exact."""

from collections.abc import Iterable
from decimal import Decimal

from reconciler.planner.cycle import Cycle
from reconciler.planner.inventory import FleetStatus
from reconciler.planner.new_nodes import NANO


def nano_usd(price: Decimal) -> int:
    """A price as billionths of a dollar."""
    return int(price * NANO)


def usd(nano: int) -> float:
    """Billionths of a dollar as dollars, rounded to what a bill shows."""
    return round(nano / NANO, 6)


def cost_of_targets(cycle: Cycle, fleets: Iterable[FleetStatus]) -> int:
    """What the targets planned so far cost per hour."""
    return sum(cycle.targets[s.key] * cycle.offers[s.key].nano_usd_per_hour for s in fleets)
