"""What the fleets' nodes cost is kept as sums while a plan is made."""

from decimal import Decimal

from reconciler.model.actions import TerminateInstance
from reconciler.planner.planner import decide
from tests.builders import (
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pods,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import drained, full, unneeded


def test_sums_follow_each_change_of_a_target_and_each_end() -> None:
    """A change that a sum misses lets `max_hourly_usd` drift away from what the targets say."""
    one = make_fleet_settings("small", sector="one", price="0.10")
    two = make_fleet_settings("large", sector="two", price="0.30", min_capacity=3)
    nodes = [
        make_node("used", one),
        drained("drained", one),
        unneeded("idle", one, 86_400, created_at=ago(90_000)),
        make_node("other", two),
    ]
    lives = [make_fleet(one, 3), make_fleet(two, 1)]
    cloud = make_cloud_of(nodes, *lives)
    pending = make_pods(4, cpu="3500m", sector="two")
    held = [full("used"), full("idle"), full("other")]
    snapshot = make_snapshot(*nodes, *held, *pending, cloud=cloud, relists=2)
    builder = decide(snapshot, make_settings(one, two))
    assert any(isinstance(action, TerminateInstance) for action in builder.actions)
    assert sorted(builder.targets.values()) == [2, 5]
    prices = {"one": Decimal("0.10"), "two": Decimal("0.30")}
    cost = {
        sector: sum(
            builder.size_of(key) * price
            for key, status in builder.view.statuses.items()
            if status.settings.sector == sector
        )
        for sector, price in prices.items()
    }
    told = {sector: Decimal(builder.sizes.nano_usd_per_hour(sector)) / 10**9 for sector in prices}
    assert told == cost
    assert builder.sizes.nano_usd_per_hour() == sum(cost.values()) * 10**9
