"""Pods that compete: for one claim, and for money and nodes across sectors."""

from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.model.plan import Plan
from reconciler.model.volumes import PersistentVolume, PersistentVolumeClaim
from reconciler.planner.capacity.consistent_spreads import buy_with_consistent_spreads
from reconciler.planner.capacity.one_by_one import CHAIN_MAX
from reconciler.planner.capacity.problem.purchase import Purchase, PurchaseRequest
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.planner import plan
from tests.builders import (
    AWAY,
    HOME,
    ZONE,
    capacity_error,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    requiring,
)

EITHER = requiring("sector", "In", "a", "b")


def test_claim_for_one_pod_only_serves_the_first_of_two_waiting() -> None:
    """Two pods cannot both mount a ReadWriteOncePod claim: capacity for the second is wasted."""
    claim = PersistentVolumeClaim(
        namespace="ns", name="data", volume_name="pv", access_modes=("ReadWriteOncePod",)
    )
    pods = [make_pod(name, namespace="ns", claims=("data",)) for name in ("p0", "p1")]
    made = plan(
        make_snapshot(
            *pods,
            make_node("n1"),
            claims=(claim,),
            volumes=(PersistentVolume(name="pv"),),
        ),
        make_settings(make_fleet_settings()),
    )
    assert [p.pod.name for p in made.placements] == ["p0"]
    assert [u.pod.name for u in made.unplaceable] == ["p1"]
    assert {r.code for u in made.unplaceable for r in u.reasons} == {"volume-in-use"}


@pytest.mark.parametrize(
    ("changed", "served"),
    [
        ({"cpu": "64"}, "p1"),
        ({"node_selector": {"disk": "none"}}, "p1"),
        ({"scheduler_name": "volcano", "left_to_scheduler": True}, "p1"),
        ({"node_selector": {"fleet": "primary-small"}}, "p0"),
    ],
)
def test_claim_for_one_pod_only_is_not_kept_for_a_pod_that_runs_nowhere(
    changed: dict[str, Any], served: str
) -> None:
    """A broken pod of an older ReplicaSet would keep its fixed successor waiting without end."""
    claim = PersistentVolumeClaim(
        namespace="ns", name="data", volume_name="pv", access_modes=("ReadWriteOncePod",)
    )
    first = make_pod("p0", namespace="ns", claims=("data",), **changed)
    second = make_pod("p1", namespace="ns", claims=("data",))
    snapshot = make_snapshot(first, second, claims=(claim,), volumes=(PersistentVolume(name="pv"),))
    made = plan(snapshot, make_settings(make_fleet_settings()))
    assert [p.pod.name for p in made.placements] == [served]


def test_limit_of_the_other_sector_holds_for_pods_that_name_both() -> None:
    """A sector's budget must hold whichever of its sectors a pod names first."""
    fleets = (
        make_fleet_settings(sector="a", max_capacity=0),
        make_fleet_settings(sector="b", price="0.10"),
    )
    settings = make_settings(*fleets, sectors={"b": {"usd_per_hour_max": Decimal("0.10")}})
    both = requiring("sector", "In", "a", "b")
    pods = [make_pod(name, cpu=3, node_affinity=both) for name in ("p0", "p1")]
    made = plan(make_snapshot(*pods), settings)
    assert {f.fleet: f.target for f in made.fleets} == {"a-small": 0, "b-small": 1}
    assert made.cost.hourly_usd_after <= 0.10


def test_cluster_limit_goes_to_the_higher_priority_of_another_sector() -> None:
    """Money that is short must not go to whoever's sector comes first in the file."""
    settings = make_settings(
        make_fleet_settings(sector="a", price="0.10"),
        make_fleet_settings(sector="b", price="0.10"),
        usd_per_hour_max=Decimal("0.20"),
    )
    pods = [
        make_pod("first", cpu=1, priority=200, node_selector={"sector": "a"}),
        make_pod("last", cpu=4, priority=0, node_selector={"sector": "a"}),
        make_pod("second", cpu=4, priority=100, node_selector={"sector": "b"}),
    ]
    made = plan(make_snapshot(*pods), settings)
    assert sorted(p.pod.name for p in made.placements) == ["first", "second"]
    assert [u.pod.name for u in made.unplaceable] == ["last"]


def with_one_node_of_b(*pods: Pod) -> Plan:
    """The plan where sector b has one node to give, and a as many as are asked for."""
    fleets = (
        make_fleet_settings(sector="a", price="0.20"),
        make_fleet_settings(sector="b", price="0.10", max_capacity=1),
    )
    return plan(make_snapshot(*pods), make_settings(*fleets))


def test_last_node_goes_to_the_higher_priority_of_another_sector() -> None:
    """A pod that may use either sector must not bring its group's low priorities to the front."""
    made = with_one_node_of_b(
        make_pod("high", cpu=1, priority=1000, node_affinity=EITHER),
        make_pod("low", cpu=3, priority=0, node_affinity=EITHER),
        make_pod("only-b", cpu=2, priority=500, node_selector={"sector": "b"}),
    )
    assert {p.pod.name: p.fleet for p in made.placements} == {
        "high": "b-small",
        "only-b": "b-small",
        "low": "a-small",
    }


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_last_node_goes_to_the_pods_that_have_no_other_sector(order: tuple[str, str]) -> None:
    """A larger pod that another sector serves as well must not keep the last node from them."""
    made = with_one_node_of_b(
        make_pod("either", cpu=3, node_affinity=requiring("sector", "In", *order)),
        make_pod("only-b", cpu=2, node_selector={"sector": "b"}),
    )
    assert {p.pod.name: p.fleet for p in made.placements} == {
        "only-b": "b-small",
        "either": "a-small",
    }


def test_pod_that_fits_nowhere_changes_nothing_for_the_others() -> None:
    """A mistyped request must not decide in which order sectors are bought for."""
    fleets = (
        make_fleet_settings("large", sector="a", price="1.00", cpu=16),
        make_fleet_settings("tiny", sector="a", price="0.10", cpu=2, max_capacity=1),
        make_fleet_settings("tiny", sector="b", price="0.26", cpu=2),
    )
    pods = [make_pod("either", cpu="600m", node_affinity=EITHER)]
    pods += make_pods(2, "own", cpu="900m", node_selector={"sector": "a"})
    bad = make_pod("bad", cpu=99, priority=10, node_affinity=EITHER)
    without, beside = (
        plan(make_snapshot(*each), make_settings(*fleets)) for each in (pods, [*pods, bad])
    )
    assert [u.pod.name for u in beside.unplaceable] == ["bad"]
    assert {f.fleet: f.target for f in beside.fleets} == {f.fleet: f.target for f in without.fleets}


def test_room_on_nodes_of_another_sector_is_counted_by_the_lower_bound() -> None:
    """A bound that sums what sectors need alone would call an expensive plan the cheapest one."""
    fleets = (
        make_fleet_settings(sector="a", price="0.10"),
        make_fleet_settings("large", sector="b", price="0.80", cpu=16, memory="64Gi"),
    )
    pods = [make_pod("b", cpu=1, node_selector={"sector": "b"}), *make_pods(4, "a", cpu=3)]
    first = make_pod("first", cpu=1, priority=10)
    for waiting in (pods, [*pods, first]):
        made = plan(make_snapshot(*waiting), make_settings(*fleets))
        assert made.unplaceable == ()
        assert made.cost.hourly_usd_lower_bound <= 0.8 <= made.cost.hourly_usd_after
    assert plan(make_snapshot(*pods), make_settings(*fleets)).cost.hourly_usd_after == 0.8


@pytest.mark.parametrize("cpu", [2, 3])
def test_followers_get_nodes_in_the_plan_that_buys_for_whom_they_follow(cpu: int) -> None:
    """Pods near one of another sector must not wait for a boot because they were asked first."""
    fleets = (
        make_fleet_settings(sector="a", price="0.10", zone="us-west-2a"),
        make_fleet_settings(sector="b", price="0.20", zone="us-west-2a"),
    )
    lead = make_pod("lead", cpu=4 - cpu, labels={"app": "lead"}, node_selector={"sector": "b"})
    followers = make_pods(
        2,
        "follower",
        cpu=cpu,
        priority=10,
        node_selector={"sector": "a"},
        pod_affinity=(near(ZONE, app="lead"),),
    )
    made = plan(make_snapshot(lead, *followers), make_settings(*fleets))
    assert made.unplaceable == ()


@pytest.mark.parametrize("limit", ["money", "fleets"])
def test_follower_comes_before_lower_priorities_of_other_groups(limit: str) -> None:
    """Its leader gets a node in the same plan: waiting for it must not cost it its turn."""
    most, money = (None, Decimal("0.20")) if limit == "money" else (1, None)
    fleets = (
        make_fleet_settings(sector="a", price="0.10", zone="us-west-2a", max_capacity=most),
        make_fleet_settings(sector="b", price="0.10", zone="us-west-2a", max_capacity=most),
    )
    near_lead = (near(ZONE, app="lead"),)
    pods = [
        make_pod(
            "lead", cpu=4, priority=1000, labels={"app": "lead"}, node_selector={"sector": "b"}
        ),
        make_pod(
            "follower", cpu=4, priority=100, node_selector={"sector": "a"}, pod_affinity=near_lead
        ),
        make_pod("low", cpu=4, priority=0, node_affinity=EITHER),
    ]
    made = plan(make_snapshot(*pods), make_settings(*fleets, usd_per_hour_max=money))
    assert sorted(p.pod.name for p in made.placements) == ["follower", "lead"]


def test_follower_of_a_pod_that_never_comes_changes_no_order() -> None:
    """A mistyped selector must not bring the low priorities of its group to the front."""
    never = (near(ZONE, app="mistyped"),)
    made = with_one_node_of_b(
        make_pod("follower", cpu=1, priority=1000, node_affinity=EITHER, pod_affinity=never),
        make_pod("either", cpu=3, node_affinity=EITHER),
        make_pod("only-b", cpu=2, node_selector={"sector": "b"}),
    )
    assert {p.pod.name: p.fleet for p in made.placements} == {
        "only-b": "b-small",
        "either": "a-small",
    }


def count_purchases(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The purchases from now on, by how many classes of pods each is for."""
    asked: list[int] = []

    def counted(sim: Simulation, request: PurchaseRequest) -> Purchase:
        asked.append(len(request.wants))
        return buy_with_consistent_spreads(sim, request)

    monkeypatch.setattr(
        "reconciler.planner.policies.scale_up.sector_purchases.buy_with_consistent_spreads", counted
    )
    return asked


def test_followers_are_asked_again_only_once_their_leader_has_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A chain through hundreds of sets of sectors would be bought for link by link, all of it."""
    asked = count_purchases(monkeypatch)
    sectors = [f"s{number}" for number in range(5)]
    fleets = [make_fleet_settings(sector=sector, zone="us-west-2a") for sector in sectors]
    sets = [combination for size in (3, 2, 1) for combination in combinations(sectors, size)]
    pods = [
        make_pod(
            f"p{number}",
            cpu=3,
            labels={"app": f"p{number}"},
            node_affinity=requiring("sector", "In", *each),
            pod_affinity=(near(ZONE, app=f"p{number + 1}"),) if number < len(sets) - 1 else (),
        )
        for number, each in enumerate(sets)
    ]
    made = plan(make_snapshot(*pods), make_settings(*fleets, default_sector="s0"))
    assert len(made.placements) > CHAIN_MAX
    assert len(asked) < 3 * len(sets)


def test_nothing_is_searched_where_every_sector_has_spent_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each plan would search nodes for each priority in each sector while the pods wait."""
    asked = count_purchases(monkeypatch)
    fleets = [make_fleet_settings(sector=sector, price="0.20") for sector in "ab"]
    sectors = {sector: {"usd_per_hour_max": Decimal("0.10")} for sector in "ab"}
    pods = [make_pod(f"p-{n}", cpu=3, node_affinity=EITHER, priority=n) for n in range(9)]
    made = plan(make_snapshot(*pods), make_settings(*fleets, sectors=sectors))
    assert asked == []
    assert {r.code for u in made.unplaceable for r in u.reasons} == {"max-cost"}


def test_room_that_a_later_sector_brings_goes_to_pods_that_an_earlier_one_left() -> None:
    """A pod that names no sector may use every sector's nodes, whichever was bought last."""
    fleets = (
        make_fleet_settings(sector="a", price="0.20", max_capacity=1),
        make_fleet_settings(sector="b", price="0.20"),
    )
    pods = [
        make_pod("a-0", cpu=3, priority=100),
        make_pod("a-1", cpu=3, priority=100),
        make_pod("b-0", cpu="500m", node_selector={"sector": "b"}),
    ]
    made = plan(make_snapshot(*pods), make_settings(*fleets, default_sector="a"))
    assert {p.pod.name for p in made.placements} == {"a-0", "a-1", "b-0"}


def short_of_spot(*pods: Pod, **limits: int | None) -> Plan:
    """The plan while the small spot fleet, which has no fallback, has no capacity."""
    small = make_fleet_settings("small", cpu=4, memory="4Gi", spot=True, price="0.10")
    medium = make_fleet_settings(
        "medium", cpu=8, memory="64Gi", spot=True, price="0.40", max_capacity=limits.get("medium")
    )
    large = make_fleet_settings(
        "large", cpu=16, memory="64Gi", price="2.00", max_capacity=limits.get("large")
    )
    cloud = make_cloud(
        make_fleet(small, launch_errors=(capacity_error(),)),
        make_fleet(medium),
        make_fleet(large),
    )
    return plan(make_snapshot(*pods, cloud=cloud), make_settings(small, medium, large))


def test_pods_that_wait_for_spot_share_new_nodes_with_those_that_do_not() -> None:
    """While a pool has no capacity every pod would get a node of its own kind."""
    made = short_of_spot(make_pod("x", cpu=1), make_pod("y", cpu=1, memory="8Gi"))
    assert {p.pod.name: p.fleet for p in made.placements} == {
        "x": "primary-medium",
        "y": "primary-medium",
    }
    assert made.cost.hourly_usd_after == pytest.approx(0.40)


def test_last_node_beside_a_shortage_goes_by_priority() -> None:
    """Pods that only fewer fleets may serve must not bring their low priorities to the front."""
    made = short_of_spot(
        make_pod("first", cpu=4, memory="8Gi", priority=100),
        make_pod("second", cpu=3, memory="1Gi", priority=50),
        make_pod("last", cpu=3, memory="8Gi"),
        medium=1,
        large=0,
    )
    assert {p.pod.name for p in made.placements} == {"first", "second"}


def test_money_goes_by_priority_where_the_home_region_has_no_capacity() -> None:
    """A low priority that the home region serves must not spend what a high one needs abroad."""
    first = make_fleet_settings("small", cpu=2, price="0.10", regions=(HOME, AWAY))
    second = make_fleet_settings("large", cpu=16, memory="64Gi", price="0.10", regions=(HOME, AWAY))
    failing = make_fleet(second, launch_errors=(capacity_error(),))
    others = [make_fleet(first), *(make_fleet(f, region=AWAY) for f in (first, second))]
    settings = make_settings(first, second, regions=(HOME, AWAY), usd_per_hour_max=Decimal("0.10"))
    pods = make_pod("low", cpu=1), make_pod("high", cpu=8, priority=100)
    made = plan(make_snapshot(*pods, cloud=make_cloud(failing, *others)), settings)
    assert [p.pod.name for p in made.placements][:1] == ["high"]


def test_priorities_share_a_node_beside_a_shortage_that_keeps_no_pod_off_a_fleet() -> None:
    """Pods that the fleet without capacity would not take are one purchase, within a limit too."""
    gone = make_fleet_settings("tiny", cpu=1, spot=True, price="0.01")
    small = make_fleet_settings("small", cpu=4, price="0.20", over_subscription=0.0)
    large = make_fleet_settings("large", cpu=8, price="0.30", over_subscription=0.0)
    cloud = make_cloud(
        make_fleet(gone, launch_errors=(capacity_error(),)), make_fleet(small), make_fleet(large)
    )
    settings = make_settings(gone, small, large, usd_per_hour_max=Decimal(10))
    pods = [make_pod(f"p-{priority}", cpu=3, priority=priority) for priority in (100, 0)]
    made = plan(make_snapshot(*pods, cloud=cloud), settings)
    assert {f.fleet: f.target for f in made.fleets if f.target} == {"primary-large": 1}
