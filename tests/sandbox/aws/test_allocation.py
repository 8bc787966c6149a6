"""Which pool comes next under each allocation strategy."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from reconciler.sandbox.aws.state.allocation import choose_pool, choose_victim, unit_price
from reconciler.sandbox.aws.values import LaunchTemplateRef, Lifecycle, Member, Pool

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")


def make_pools(*types: str, priority: float = 1.0) -> tuple[Pool, ...]:
    """One pool per type and zone; types that come first have the lower priority number."""
    return tuple(
        Pool(
            template=LaunchTemplateRef(template_id="lt-1"),
            instance_type=name,
            zone=zone,
            subnet_id=None,
            weight=1.0,
            priority=priority + rank,
            max_price=None,
            image_id=None,
            order=rank * len(ZONES) + place,
        )
        for rank, name in enumerate(types)
        for place, zone in enumerate(ZONES)
    )


def launch(pools: Sequence[Pool], count: int, strategy: str, lifecycle: Lifecycle) -> list[Member]:
    """The members after `count` launches."""
    members: list[Member] = []
    for number in range(count):
        pool = choose_pool(pools, members, lifecycle=lifecycle, strategy=strategy)
        members.append(
            Member(
                instance_id=f"i-{number}",
                number=number,
                pool=pool,
                lifecycle=lifecycle,
                spot_request_id=None,
                launched_at=datetime(2026, 1, 31, 12, 0, number, tzinfo=UTC),
            )
        )
    return members


def test_lowest_price_spot_stays_in_the_cheapest_pool() -> None:
    """With one pool in use everything is lost together when it dries up, as in EC2."""
    pools = make_pools("r5.xlarge", "m5.2xlarge")
    used = {m.pool for m in launch(pools, 6, "lowestPrice", "spot")}
    assert used == {min(pools, key=lambda p: unit_price(p, "spot"))}


def test_lowest_price_on_demand_spreads_over_zones() -> None:
    """On-demand prices are the same in every zone, so no zone is filled before the others."""
    members = launch(make_pools("r5.xlarge", "m5.2xlarge"), 6, "lowestPrice", "on-demand")
    assert {m.pool.instance_type for m in members} == {"r5.xlarge"} or {
        m.pool.instance_type for m in members
    } == {"m5.2xlarge"}
    assert sorted(m.pool.zone for m in members) == sorted(ZONES * 2)


def test_diversified_uses_every_pool_alike() -> None:
    """Losing one pool may cost only its share."""
    pools = make_pools("r5.xlarge", "m5.2xlarge")
    members = launch(pools, 12, "diversified", "spot")
    assert sorted(m.pool.order for m in members) == sorted(list(range(6)) * 2)


@pytest.mark.parametrize(
    "strategy",
    ["priceCapacityOptimized", "price-capacity-optimized", "capacity-optimized"],
)
def test_capacity_aware_strategies_spread_over_zones(strategy: str) -> None:
    """Both spellings of a strategy must mean the same, and no zone may hold all nodes."""
    members = launch(make_pools("r5.xlarge", "m5.2xlarge"), 6, strategy, "spot")
    assert sorted(m.pool.zone for m in members) == sorted(ZONES * 2)


@pytest.mark.parametrize(
    ("strategy", "lifecycle"),
    [("prioritized", "on-demand"), ("capacityOptimizedPrioritized", "spot")],
)
def test_prioritized_takes_the_lowest_number_first(strategy: str, lifecycle: Lifecycle) -> None:
    """A priority that is read the wrong way round launches the fallback type first."""
    members = launch(make_pools("m5.2xlarge", "r5.xlarge"), 3, strategy, lifecycle)
    assert {m.pool.instance_type for m in members} == {"m5.2xlarge"}


def test_victim_is_the_newest_of_the_fullest_pool() -> None:
    """Under `termination` EC2 chooses; the choice must at least keep the spread."""
    pools = make_pools("r5.xlarge")
    members = launch(pools, 4, "diversified", "spot")
    assert choose_victim(members).instance_id == "i-3"
