"""Whether the next instance of an Auto Scaling group will be spot or on-demand."""

from typing import Final

from reconciler.model.fleet import Lifecycle
from reconciler.records.aws.fields import Count, Wire

ALL_ON_DEMAND: Final = 100
SPOT_MARKET: Final = "spot"
"""The `MarketType` of a launch template's `InstanceMarketOptions`; another is `capacity-block`."""


class DistributionWire(Wire):
    """`InstancesDistribution` of a mixed instances policy."""

    on_demand_base_capacity: Count | None = None
    on_demand_percentage_above_base_capacity: Count | None = None
    spot_allocation_strategy: str | None = None
    spot_max_price: str | None = None

    @property
    def on_demand_percentage(self) -> int:
        """Return the share of on-demand. Source: InstancesDistribution reference, read 2026-11."""
        stated = self.on_demand_percentage_above_base_capacity
        return ALL_ON_DEMAND if stated is None else stated


def next_in_distribution(shares: DistributionWire, desired_capacity: int) -> Lifecycle:
    """Return what most of the next instances of a group with a mixed instances policy will be.

    Below its base capacity all are on-demand; above it the larger part decides.

    Args:
        shares: The distribution.
        desired_capacity: How many instances it is to have now.
    """
    if desired_capacity < (shares.on_demand_base_capacity or 0):
        return "on-demand"
    return "spot" if 2 * shares.on_demand_percentage < ALL_ON_DEMAND else "on-demand"
