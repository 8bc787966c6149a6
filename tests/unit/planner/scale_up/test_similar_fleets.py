"""`balance_similar_groups`: new nodes are spread over fleets whose nodes are alike."""

from dataclasses import replace
from decimal import Decimal

import pytest

from reconciler.model.actions import SetCapacity
from reconciler.model.cluster import Pod
from reconciler.planner.planner import plan
from reconciler.planner.settings import BalanceSettings, FleetSettings
from tests.builders import (
    HOSTNAME,
    ZONE,
    amounts,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
)

LARGE = amounts(cpu=3, memory="1Gi", pods=1)
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
BALANCED = BalanceSettings()


def _zonal(zone: str, **changed: object) -> FleetSettings:
    return make_fleet_settings("small", zone=zone, spot=False, **changed)  # type: ignore[arg-type]


def _bought(
    *fleets: FleetSettings,
    pods: tuple[Pod, ...],
    balance: BalanceSettings | None = BALANCED,
    nodes: tuple[object, ...] = (),
    **changed: object,
) -> dict[str, int]:
    """By fleet how many nodes it gets on top of what it has."""
    settings = make_settings(*fleets, balance=balance, **changed)
    actions = plan(make_snapshot(*pods, *nodes), settings).actions  # type: ignore[arg-type]
    raised = [a for a in actions if isinstance(a, SetCapacity)]
    return {a.fleet.removeprefix("primary-small-"): a.to_capacity - a.from_capacity for a in raised}


def test_new_nodes_are_spread_over_the_zones_only_where_that_is_asked_for() -> None:
    """One zone's outage would take all nodes of a service that says nothing of zones."""
    fleets = [_zonal(zone) for zone in ZONES]
    pods = make_pods(30, cpu="3", memory="1Gi")
    assert _bought(*fleets, pods=pods) == dict.fromkeys(ZONES, 10)
    assert sum(_bought(*fleets, pods=pods, balance=None).values()) == 30
    assert len(_bought(*fleets, pods=pods, balance=None)) == 1


def test_smaller_fleets_catch_up() -> None:
    """What counts is how large the fleets will be, not how much each gets."""
    fleets = [_zonal(zone) for zone in ZONES]
    full = [
        make_node(f"n{i}", fleets[0], allocatable=amounts(cpu="100m", memory="1Gi", pods=9))
        for i in range(4)
    ]
    pods = make_pods(5, cpu="3", memory="1Gi")
    assert _bought(*fleets, pods=pods, nodes=tuple(full)) == {ZONES[1]: 3, ZONES[2]: 2}


def test_label_of_the_whole_cluster_keeps_no_groups_apart() -> None:
    """Only nodes show it: a group that never had one would get its share from none."""
    groups = [
        _zonal(zone, provider="asg", auto_scaling_group=zone, managed=False) for zone in ZONES
    ]
    full = make_node("n", groups[0], labels={"k8s.io/cloud-provider-aws": "0123456789abcdef"})
    pods = (make_pod("runs", cpu="4", node="n"), *make_pods(5, cpu="3", memory="1Gi"))
    assert _bought(*groups, pods=pods, nodes=(full,)) == {ZONES[0]: 1, ZONES[1]: 2, ZONES[2]: 2}


def test_pods_that_are_bought_for_one_by_one_are_spread_too() -> None:
    """Pods that must be near each other take another way through the search."""
    fleets = [_zonal(zone) for zone in ZONES]
    pods = tuple(
        make_pod(
            f"p{i}", cpu="1", labels={"app": f"a{i}"}, pod_affinity=(near(HOSTNAME, app=f"a{i}"),)
        )
        for i in range(3)
    )
    large = tuple(replace(p, spec=replace(p.spec, requests=LARGE)) for p in pods)
    assert _bought(*fleets, pods=large) == dict.fromkeys(ZONES, 1)


def test_maximum_and_zones_of_pods_are_kept() -> None:
    """A full fleet cannot take its share, and a pod's zone is not negotiable."""
    fleets = [_zonal(ZONES[0], max_capacity=1), *(_zonal(zone) for zone in ZONES[1:])]
    pods = make_pods(5, cpu="3", memory="1Gi")
    assert _bought(*fleets, pods=pods) == {ZONES[0]: 1, ZONES[1]: 2, ZONES[2]: 2}
    bound = make_pods(4, "bound", cpu="3", memory="1Gi", node_selector={ZONE: ZONES[1]})
    assert _bought(*fleets, pods=bound) == {ZONES[1]: 4}


@pytest.mark.parametrize(
    "other",
    [
        make_fleet_settings("small", zone=ZONES[1], spot=True),
        _zonal(ZONES[1], labels={"team": "a"}),
        _zonal(ZONES[1], priority=3),
        _zonal(ZONES[1], memory="12Gi"),
        make_fleet_settings("large", zone=ZONES[1], spot=False, cpu=8, memory="32Gi", price="0.2"),
    ],
    ids=["spot", "label", "priority", "memory", "size"],
)
def test_fleets_that_differ_are_not_balanced(other: FleetSettings) -> None:
    """Else a spot fleet, or nodes of another team, would be grown for the sake of numbers."""
    pods = make_pods(6, cpu="3", memory="1Gi")
    one = _zonal(ZONES[0], usd_per_hour=Decimal("0.05"))
    assert _bought(one, other, pods=pods) == {ZONES[0]: 6}


def test_labels_that_are_ignored_do_not_keep_fleets_apart_and_chosen_ones_decide_alone() -> None:
    """The two flags of Cluster Autoscaler for it."""
    fleets = [_zonal(ZONES[0], labels={"team": "a", "pool": "p"})]
    fleets += [_zonal(ZONES[1], labels={"team": "b", "pool": "p"}, memory="12Gi")]
    alike = [fleets[0], _zonal(ZONES[1], labels={"team": "b", "pool": "p"})]
    pods = make_pods(6, cpu="3", memory="1Gi")
    ignoring = BalanceSettings(ignored_labels=frozenset({"team"}))
    assert _bought(*alike, pods=pods, balance=ignoring) == {ZONES[0]: 3, ZONES[1]: 3}
    by_pool = BalanceSettings(labels=frozenset({"pool"}))
    assert _bought(*fleets, pods=pods, balance=by_pool) == {ZONES[0]: 3, ZONES[1]: 3}
    assert len(_bought(*fleets, pods=pods, balance=ignoring)) == 1


def test_node_that_a_smaller_fleet_could_not_hold_stays_where_it_fits() -> None:
    """Labels alone decide here, so the resources are looked at pod by pod."""
    fleets = [_zonal(ZONES[0]), _zonal(ZONES[1], cpu=2)]
    by_sector = BalanceSettings(labels=frozenset({"sector"}))
    pods = make_pods(4, cpu="3", memory="1Gi")
    assert _bought(*fleets, pods=pods, balance=by_sector) == {ZONES[0]: 4}


def test_more_expensive_fleets_take_their_share_within_the_limit_on_cost() -> None:
    """Spot prices differ by zone; a limit on cost is never passed for the sake of balance."""
    fleets = [_zonal(ZONES[0]), _zonal(ZONES[1], usd_per_hour=Decimal("0.12"))]
    pods = make_pods(10, cpu="3", memory="1Gi")
    assert _bought(*fleets, pods=pods) == {ZONES[0]: 5, ZONES[1]: 5}
    limited = _bought(*fleets, pods=pods, usd_per_hour_max=Decimal("1.00"))
    assert limited == {ZONES[0]: 10}


def test_plan_says_with_which_fleets_it_balanced() -> None:
    """A raise of a fleet that nothing names needs an explanation."""
    settings = make_settings(*[_zonal(zone) for zone in ZONES], balance=BALANCED)
    actions = plan(make_snapshot(*make_pods(3, cpu="3")), settings).actions
    first = next(a for a in actions if isinstance(a, SetCapacity))
    assert first.because == (
        "1 pending pod needs 1 more node; its size is balanced with primary-small-us-west-2b, "
        "primary-small-us-west-2c"
    )
