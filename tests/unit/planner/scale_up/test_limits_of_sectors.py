"""Sectors with cost limits of their own, of which pods name several."""

from decimal import Decimal

import pytest

from reconciler.planner.planner import plan
from tests.builders import (
    make_fleet_settings,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    requiring,
)

EITHER = requiring("sector", "In", "a", "b")


@pytest.mark.parametrize(("limit", "bought"), [("10", {"b-small": 2}), ("0.15", {"b-small": 2})])
def test_limit_of_a_sector_that_does_not_bind_changes_no_purchase(
    limit: str, bought: dict[str, int]
) -> None:
    """Whatever its limit, the more expensive sector is not to be asked first."""
    fleets = (
        make_fleet_settings(sector="a", price="0.40"),
        make_fleet_settings(sector="b", price="0.20"),
    )
    settings = make_settings(*fleets, sectors={"a": {"usd_per_hour_max": Decimal(limit)}})
    pods = make_pods(2, cpu=3, node_affinity=EITHER)
    made = plan(make_snapshot(*pods), settings)
    assert {f.fleet: f.target for f in made.fleets if f.target} == bought
    assert made.cost.hourly_usd_lower_bound == pytest.approx(0.40)


def test_priorities_share_a_node_where_the_limit_of_a_sector_does_not_bind() -> None:
    """Bought for one after the other, each priority had the node that was cheapest for it alone."""
    fleets = (
        make_fleet_settings("small", sector="a", cpu=4, price="0.20", over_subscription=0.0),
        make_fleet_settings("large", sector="b", cpu=8, price="0.30", over_subscription=0.0),
    )
    settings = make_settings(*fleets, sectors={"b": {"usd_per_hour_max": Decimal(10)}})
    pods = [
        make_pod(f"p-{priority}", cpu=3, node_affinity=EITHER, priority=priority)
        for priority in (100, 0)
    ]
    made = plan(make_snapshot(*pods), settings)
    assert {f.fleet: f.target for f in made.fleets if f.target} == {"b-large": 1}
    assert made.cost.hourly_usd_lower_bound == pytest.approx(0.30)


@pytest.mark.parametrize(
    ("prices", "limits", "bought"),
    [
        (("0.30", "0.20"), {"b": "0.45"}, {"a-small": 2, "b-small": 2}),
        (("0.20", "0.20"), {"a": "0.45", "b": "0.40"}, {"a-small": 2, "b-small": 2}),
    ],
    ids=["cheaper", "alike"],
)
@pytest.mark.parametrize("priorities", [1, 4])
def test_limits_of_sectors_are_used_before_more_expensive_ones(
    prices: tuple[str, str], limits: dict[str, str], bought: dict[str, int], priorities: int
) -> None:
    """As the cheap sector's limit did not do for all, the dear one had all nodes."""
    fleets = [
        make_fleet_settings(sector=sector, price=price)
        for sector, price in zip("ab", prices, strict=True)
    ]
    sectors = {each: {"usd_per_hour_max": Decimal(limit)} for each, limit in limits.items()}
    pods = [
        make_pod(f"p-{number}", cpu=3, node_affinity=EITHER, priority=number % priorities)
        for number in range(4)
    ]
    made = plan(make_snapshot(*pods), make_settings(*fleets, sectors=sectors))
    assert {f.fleet: f.target for f in made.fleets if f.target} == bought


def test_bound_counts_the_sector_that_was_not_asked_as_the_limit_of_another_binds() -> None:
    """What a purchase in parts costs is no proof: another order of the parts may be cheaper."""
    fleets = (
        make_fleet_settings("large", sector="a", cpu=8, price="0.30", max_capacity=1),
        make_fleet_settings("tiny", sector="b", cpu=1, price="0.01", max_capacity=4),
    )
    settings = make_settings(*fleets, sectors={"b": {"usd_per_hour_max": Decimal("0.03")}})
    pods = make_pods(4, cpu="800m", node_affinity=EITHER)
    made = plan(make_snapshot(*pods), settings)
    assert made.unplaceable == ()
    assert made.cost.hourly_usd_after <= 0.31
    assert made.cost.hourly_usd_lower_bound <= 0.04
