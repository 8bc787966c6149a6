"""Which pool an EC2 Fleet launches its next instance from, and which member it ends first.

Source: EC2 user guide, "Allocation strategies for EC2 Fleet". What EC2 leaves open (zones at equal
price, market depth) is decided here so that the same fleet always gets the same instances.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from reconciler.sandbox.aws.state.prices import (
    on_demand_usd_per_hour,
    spot_depth,
    spot_usd_per_hour,
)
from reconciler.sandbox.aws.values import Lifecycle, Member, Pool

_Rank = tuple[float, ...]


def unit_price(pool: Pool, lifecycle: Lifecycle) -> float:
    """Return USD per hour and unit of target capacity."""
    if lifecycle == "spot":
        return spot_usd_per_hour(pool.instance_type, pool.zone) / pool.weight
    return on_demand_usd_per_hour(pool.instance_type) / pool.weight


def choose_pool(
    pools: Sequence[Pool],
    members: Sequence[Member],
    *,
    lifecycle: Lifecycle,
    strategy: str,
    pools_to_use: int = 1,
) -> Pool:
    """Return the pool of the next instance.

    Args:
        pools: At least one; those without capacity are left out by the caller.
        members: The fleet's members of this lifecycle.
        lifecycle: Which prices and which part of the target count.
        strategy: `AllocationStrategy` in either spelling (`lowestPrice`, `lowest-price`).
        pools_to_use: `InstancePoolsToUseCount`, for the lowest Spot price only.
    """
    words = strategy.replace("-", "").lower()
    if lifecycle == "spot" and words == "lowestprice":
        pools = sorted(pools, key=lambda p: (unit_price(p, lifecycle), p.order))[:pools_to_use]
        words = "diversified"
    rank = _ranking(words, members, lifecycle)
    return min(pools, key=lambda pool: (*rank(pool), pool.order))


def choose_victim(members: Sequence[Member]) -> Member:
    """Return the member that ends first: of the fullest pool, the most expensive, the newest."""
    crowd = Counter(member.pool.order for member in members)
    return max(
        members,
        key=lambda m: (
            crowd[m.pool.order],
            unit_price(m.pool, m.lifecycle),
            m.launched_at,
            m.instance_id,
        ),
    )


def _ranking(
    strategy: str, members: Sequence[Member], lifecycle: Lifecycle
) -> Callable[[Pool], _Rank]:
    in_pool = Counter(member.pool.order for member in members)
    in_zone = Counter(member.pool.zone for member in members)

    def price(pool: Pool) -> float:
        return unit_price(pool, lifecycle)

    def depth(pool: Pool) -> float:
        return -spot_depth(pool.instance_type, pool.zone)

    match strategy:
        case "diversified":
            return lambda p: (in_pool[p.order], price(p))
        case "prioritized":
            return lambda p: (p.priority, in_zone[p.zone])
        case "capacityoptimized":
            return lambda p: (in_zone[p.zone], depth(p))
        case "capacityoptimizedprioritized":
            return lambda p: (p.priority, in_zone[p.zone], depth(p))
        case "pricecapacityoptimized":
            return lambda p: (in_zone[p.zone], price(p))
        case _:
            return lambda p: (price(p), in_zone[p.zone])
