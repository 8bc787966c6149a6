"""Types and zones from which EC2 took spot instances back: bought from less for half an hour."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from reconciler.model.actions import SetCapacity
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import InstanceId
from reconciler.model.notices import MessageId, Notice
from reconciler.model.plan import Plan
from reconciler.model.saved_state import InterruptedPool
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    NOW,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pods,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.interrupted_nodes import noticed

A = make_fleet_settings(zone="us-west-2a")
B = make_fleet_settings(zone="us-west-2b")


def pool(zone: str = "us-west-2a", seconds_ago: float = 60) -> InterruptedPool:
    """The type of both fleets in a zone."""
    return InterruptedPool(instance_type="small.type", zone=zone, at=ago(seconds_ago))


def bought(
    *fleets: FleetSettings, pods: int = 1, pools: tuple[InterruptedPool, ...] = ()
) -> dict[str, int]:
    """How many nodes a plan asks each fleet for."""
    made = made_for(*fleets, pods=pods, pools=pools)
    return {new.fleet: new.nodes for new in made.new_nodes}


def made_for(*fleets: FleetSettings, pods: int, pools: tuple[InterruptedPool, ...]) -> Plan:
    """The plan for pods that need a node each."""
    cloud = make_cloud(*(make_fleet(fleet) for fleet in fleets))
    waiting = make_pods(pods, cpu="3")
    return plan(
        make_snapshot(*waiting, cloud=cloud, interrupted_pools=pools), make_settings(*fleets)
    )


def test_of_equal_fleets_that_of_the_interrupted_zone_is_bought_from_last() -> None:
    """The replacement would come from the pool that EC2 has just emptied."""
    usual = bought(A, B)
    assert bought(A, B, pools=(pool(),)) == {B.name: 1}
    assert bought(A, B, pools=(pool("us-west-2b"),)) == {A.name: 1}
    assert bought(A, B, pools=(pool(), pool("us-west-2b"))) == usual


@pytest.mark.parametrize("expander", ["priority", "least-waste", "most-pods"])
def test_other_expanders_break_their_ties_by_it(expander: str) -> None:
    """Only the default would know of interruptions."""
    cloud = make_cloud(make_fleet(A), make_fleet(B))
    settings = make_settings(A, B, sectors={"primary": {"expander": expander}})
    for avoided, chosen in ((A, B), (B, A)):
        snapshot = make_snapshot(
            *make_pods(1, cpu="3"), cloud=cloud, interrupted_pools=(pool(avoided.zone or ""),)
        )
        assert [new.fleet for new in plan(snapshot, settings).new_nodes] == [chosen.name]


def test_much_cheaper_fleet_is_bought_from_all_the_same() -> None:
    """One notice would make the cluster more expensive by half."""
    dear = replace(B, usd_per_hour=Decimal("0.15"))
    assert bought(A, dear, pools=(pool(),)) == {A.name: 1}
    assert bought(A, replace(B, usd_per_hour=Decimal("0.103")), pools=(pool(),)) == {B.name: 1}


def test_fleet_over_more_pools_is_penalised_for_the_share_that_was_interrupted() -> None:
    """A fleet over three zones would be as suspect as one that has lost its only one."""
    wide = make_fleet_settings("wide", zones=("us-west-2a", "us-west-2b", "us-west-2c"))
    narrow = replace(A, usd_per_hour=Decimal("0.0995"))
    pools = (pool(), replace(pool(), instance_type="wide.type"))
    assert bought(wide, narrow) == {narrow.name: 1}
    assert bought(wide, narrow, pools=pools) == {wide.name: 1}


def test_fleet_without_known_zones_is_penalised_by_its_type() -> None:
    """A config that names no subnets would not profit at all."""
    open_zone = make_fleet_settings()
    dear = replace(B, usd_per_hour=Decimal("0.101"))
    assert bought(open_zone, dear, pools=(pool("us-west-2c"),)) == {dear.name: 1}
    assert bought(open_zone, dear, pools=(pool("eu-west-1c"),)) == {open_zone.name: 1}


def test_on_demand_capacity_is_not_penalised() -> None:
    """EC2 does not take on-demand instances back."""
    steady = replace(A, spot=False, usd_per_hour=Decimal("0.099"))
    assert bought(steady, B, pools=(pool(),)) == {steady.name: 1}


def test_no_pod_waits_for_it() -> None:
    """A fleet at its maximum, and a limit of cost, would leave pods pending."""
    small_b = replace(B, max_capacity=1)
    assert bought(A, small_b, pods=3, pools=(pool(),)) == {A.name: 2, B.name: 1}
    dear = replace(B, usd_per_hour=Decimal("0.103"))
    cloud = make_cloud(make_fleet(A), make_fleet(dear))
    limited = make_settings(A, dear, usd_per_hour_max=Decimal("0.2"))
    waiting = make_pods(2, cpu="3")
    made = plan(make_snapshot(*waiting, cloud=cloud, interrupted_pools=(pool(),)), limited)
    assert made.unplaceable == ()
    assert {new.fleet: new.nodes for new in made.new_nodes} == {A.name: 2}


def test_penalty_shows_in_the_reason_and_not_in_the_money() -> None:
    """Nobody could tell why the other fleet was chosen, or the bill would not match."""
    made = made_for(A, B, pods=1, pools=(pool(),))
    (raised,) = [a for a in made.actions if isinstance(a, SetCapacity)]
    assert "small.type in us-west-2a preferred less" in raised.because
    assert made.cost.hourly_usd_after == pytest.approx(0.1)
    assert made.cost.gap == 0


def test_half_an_hour_later_it_is_forgotten() -> None:
    """A pool would be avoided for ever."""
    assert made_for(A, B, pods=1, pools=(pool(seconds_ago=1799),)).interrupted_pools != ()
    assert made_for(A, B, pods=1, pools=(pool(seconds_ago=1800),)).interrupted_pools == ()


def test_time_that_no_notice_can_have_is_not_believed() -> None:
    """A pool of the year 2100 on the Lease would be avoided until then."""
    assert made_for(A, B, pods=1, pools=(pool(seconds_ago=-86400),)).interrupted_pools == ()


def test_pool_of_a_noticed_node_is_remembered_with_the_end_of_its_instance() -> None:
    """The purchase of the same plan would go there already, and each cycle write the Lease."""
    node = noticed("a", 110, fleet=A)
    made = plan(make_snapshot(node, make_node("b", B)), make_settings(A, B))
    assert made.interrupted_pools == (pool(seconds_ago=-110),)
    later = replace(make_snapshot(node), at=NOW + timedelta(seconds=20))
    again = replace(later, cluster=replace(later.cluster, interrupted_pools=made.interrupted_pools))
    assert plan(again, make_settings(A, B)).interrupted_pools == made.interrupted_pools


@pytest.mark.parametrize("action", ["rebalance-recommendation", "scheduled-change"])
def test_only_interruptions_of_spot_instances_count(action: str) -> None:
    """A planned reboot says nothing about spot capacity."""
    text = f"{action}/{ago(-60).isoformat()}"
    key = "fleet-reconciler.io/interruption"
    other = make_node("a", A, annotations=FrozenMap({key: text}))
    steady = noticed("b", fleet=replace(B, spot=False))
    settings = make_settings(A, replace(B, spot=False))
    assert plan(make_snapshot(other, steady), settings).interrupted_pools == ()


def told(snapshot: Snapshot, instance: str) -> Snapshot:
    """The snapshot with a message of the queue."""
    notice = Notice(
        message=MessageId("m"),
        kind="spot-interruption",
        instance=InstanceId(instance),
        action="terminate",
        at=ago(-110),
    )
    return replace(snapshot, notices=(notice,))


@pytest.mark.parametrize("state", ["running", "shutting-down"])
def test_message_about_an_instance_counts_even_when_it_is_ending_already(state: str) -> None:
    """A message that comes late would be lost although it says the same about the pool."""
    fleet, node = make_fleet(A, 1), make_node("a", A)
    ending = make_instance(node, fleet, state=state)
    cloud = make_cloud(fleet, instances=(ending, make_instance(make_node("b", A), fleet)))
    snapshot = make_snapshot(node, make_node("b", A), cloud=cloud)
    made = plan(told(snapshot, "i-a"), make_settings(A, B))
    assert made.interrupted_pools == (pool(seconds_ago=-110),)
    assert plan(told(snapshot, "i-x"), make_settings(A, B)).interrupted_pools == ()


@pytest.mark.parametrize("at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_time_at_the_end_of_all_times_is_forgotten(at: datetime) -> None:
    """Somebody's edit of the Lease, or a zero time, ended every plan."""
    odd = replace(pool(), at=at)
    made = made_for(A, B, pods=1, pools=(odd,))
    assert made.interrupted_pools == ()
