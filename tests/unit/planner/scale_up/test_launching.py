"""Pods and capacity that is on its way: what was bought for them is enough (docs/scale-up.md)."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.actions import SetCapacity
from reconciler.model.cluster import HostPort, Pod
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOSTNAME,
    ZONE,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    spread,
)
from tests.properties.optimum import dozen
from tests.properties.reached import asked_for
from tests.unit.planner.placed import places, raises


def _launched(pods: Sequence[Pod], fleets: Sequence[FleetSettings], **limits: Any) -> Snapshot:
    """Right after the first plan: its nodes are on their way, and no pod is bound."""
    settings = make_settings(*fleets, **limits)
    before = make_snapshot(*pods, cloud=make_cloud(*(make_fleet(fleet, 0) for fleet in fleets)))
    return asked_for(before, plan(before, settings))


def test_pods_that_first_fit_would_leave_over_have_places_on_launching_nodes() -> None:
    """3+2+2 twice fills two nodes; with the largest first a pod is left, and a node is bought."""
    fleet = make_fleet_settings(cpu=7)
    pods = (*make_pods(2, "large", cpu=3), *make_pods(4, "small", cpu=2))
    made = plan(_launched(pods, [fleet]), make_settings(fleet))
    assert raises(made) == {}
    assert sorted(set(places(made).values()), key=str) == [
        ("primary-small", 0, None),
        ("primary-small", 1, None),
    ]


def test_pods_that_first_fit_would_leave_over_have_places_on_nodes_of_the_minimum() -> None:
    """Nodes that the same plan buys for the minimum are filled as tightly: no third is bought."""
    fleet = make_fleet_settings(cpu=7, min_capacity=2)
    pods = (*make_pods(2, "large", cpu=3), *make_pods(4, "small", cpu=2))
    made = plan(make_snapshot(*pods), make_settings(fleet))
    assert raises(made) == {("primary-small", "us-west-2"): 2}
    assert len(places(made)) == len(pods)


def test_nodes_of_the_minimum_are_left_to_the_pods_that_no_other_fleet_takes() -> None:
    """Larger pods that another fleet takes as well went first, and kept these from the maximum."""
    some = make_fleet_settings("some", cpu=4, min_capacity=2, max_capacity=2, price="0.1")
    other = make_fleet_settings("other", cpu=4, price="0.2")
    bound = make_pods(2, "bound", cpu=3, node_selector={"size": "some"})
    made = plan(make_snapshot(*bound, *make_pods(2, "free", cpu=4)), make_settings(some, other))
    assert made.unplaceable == ()
    assert raises(made) == {("primary-some", "us-west-2"): 2, ("primary-other", "us-west-2"): 2}


@pytest.mark.parametrize("seed", range(12))
def test_purchase_is_not_repeated_while_its_nodes_launch(seed: int) -> None:
    """Each plan until the nodes have joined would buy a few more."""
    pods, fleets = dozen(seed)
    again = plan(_launched(pods, fleets), make_settings(*fleets))
    assert [action for action in again.actions if isinstance(action, SetCapacity)] == []
    assert len(places(again)) == len(pods)


@pytest.mark.parametrize("seed", range(12))
def test_purchase_for_pods_of_many_rules_is_not_repeated(seed: int) -> None:
    """Pods that must be apart are dealt out with the others, on launching nodes too."""
    pods, fleets = dozen(seed)
    apart = (near(HOSTNAME, app="apart"),)
    pods = tuple(
        replace(
            pod,
            labels=make_pod(labels={"app": "apart"}).labels,
            spec=replace(pod.spec, pod_anti_affinity=apart),
        )
        if number % 3 == 0
        else pod
        for number, pod in enumerate(pods)
    )
    again = plan(_launched(pods, fleets), make_settings(*fleets))
    assert [action for action in again.actions if isinstance(action, SetCapacity)] == []
    assert len(places(again)) == len(pods)


def test_pods_dealt_to_zones_find_the_nodes_that_were_bought_for_them() -> None:
    """Which zone came first would depend on the nodes that are on their way."""
    fleets = [
        make_fleet_settings(name, cpu=cpu, price=price, zone=zone, over_subscription=0.0)
        for name, cpu, price in (("four", 4, "0.20"), ("eight", 8, "0.44"))
        for zone in ("us-west-2a", "us-west-2b")
    ]
    pods = (
        *make_pods(3, "s", cpu=3, labels={"app": "s"}, topology_spread=(spread(ZONE, app="s"),)),
        *make_pods(
            3, "t", cpu="1500m", labels={"app": "t"}, pod_anti_affinity=(near(ZONE, app="t"),)
        ),
    )
    first = _launched(pods, fleets)
    again = plan(first, make_settings(*fleets))
    assert raises(again) == {}
    assert len(places(again)) == 5


def test_pod_that_comes_later_costs_one_node_and_not_two() -> None:
    """What launches is filled as tightly as it was bought: only the new pod needs a node."""
    fleet = make_fleet_settings(cpu=7)
    pods = (*make_pods(2, "large", cpu=3), *make_pods(4, "small", cpu=2))
    launched = _launched(pods, [fleet])
    later = make_pod("later", cpu=7, created_at=ago(0))
    cluster = replace(launched.cluster, pods=(*launched.cluster.pods, later))
    made = plan(replace(launched, cluster=cluster), make_settings(fleet))
    assert raises(made) == {("primary-small", "us-west-2"): 3}
    assert len(places(made)) == len(pods) + 1


def test_launching_capacity_comes_before_cheaper_nodes_that_could_be_bought() -> None:
    """It is paid for already."""
    dear = make_fleet_settings("dear", cpu=7, price="0.7")
    cheap = make_fleet_settings("cheap", cpu=7, price="0.1")
    pods = (*make_pods(2, "large", cpu=3), *make_pods(4, "small", cpu=2))
    cloud = make_cloud(make_fleet(dear, 2), make_fleet(cheap, 0))
    made = plan(make_snapshot(*pods, cloud=cloud), make_settings(dear, cheap))
    assert raises(made) == {}


@pytest.mark.parametrize("seed", range(12))
def test_pod_that_nothing_can_serve_leaves_the_others_their_places(seed: int) -> None:
    """With it one pod is always left over: the others' nodes would be bought again and again."""
    pods, fleets = dozen(seed)
    made = plan(_launched((*pods, make_pod("huge", cpu=64)), fleets), make_settings(*fleets))
    assert raises(made) == {}
    assert [unplaceable.pod.name for unplaceable in made.unplaceable] == ["huge"]


def test_pods_of_two_sectors_find_their_places_each_in_its_own() -> None:
    """What one sector's pods need would be counted twice, or taken for the other's."""
    web = make_fleet_settings("small", "web", cpu=7)
    batch = make_fleet_settings("small", "batch", cpu=7)
    pods = [
        pod
        for sector in ("web", "batch")
        for pod in (
            *make_pods(2, f"{sector}-large", cpu=3, sector=sector),
            *make_pods(4, f"{sector}-small", cpu=2, sector=sector),
        )
    ]
    made = plan(_launched(pods, [web, batch]), make_settings(web, batch))
    assert raises(made) == {}
    assert {pod.split("-")[0] + str(seat) for pod, seat in places(made).items()} == {
        f"{sector}('{sector}-small', {number}, None)"
        for sector in ("web", "batch")
        for number in (0, 1)
    }


def test_fleet_at_its_maximum_takes_what_its_launching_nodes_can_hold() -> None:
    """A pod would be called unplaceable that has a place on a node which is on its way."""
    fleet = make_fleet_settings(cpu=7, max_capacity=2)
    pods = (*make_pods(2, "large", cpu=3), *make_pods(4, "small", cpu=2))
    made = plan(_launched(pods, [fleet]), make_settings(fleet))
    assert (raises(made), made.unplaceable) == ({}, ())


def test_room_that_the_tighter_packing_leaves_on_launching_nodes_is_used() -> None:
    """A third node would be bought for a pod that the second one, on its way, has a place for."""
    fleet = make_fleet_settings(cpu=4, max_capacity=2)
    even = (spread(HOSTNAME, app="even"),)
    pods = [
        make_pod(f"even-{n}", cpu=1, labels={"app": "even"}, topology_spread=even) for n in range(3)
    ]
    pods += [
        make_pod(f"other-{n}", cpu=cpu) for n, cpu in enumerate(("2500m", "1500m", "500m", "500m"))
    ]
    cloud = make_cloud(make_fleet(fleet, 2))
    made = plan(make_snapshot(*pods, cloud=cloud), make_settings(fleet))
    assert made.unplaceable == ()
    assert len(places(made)) == len(pods)


@pytest.mark.parametrize("of_sector", [False, True])
def test_launching_nodes_keep_places_for_priorities_that_the_limit_allows_no_more_nodes(
    *, of_sector: bool
) -> None:
    """Places were looked for as if a third node could be bought: the highest priority had none."""
    most = {"usd_per_hour_max": Decimal("0.80")}
    limits: dict[str, Any] = {"sectors": {"primary": most}} if of_sector else most
    fleet = make_fleet_settings("large", cpu=8, memory="32Gi", price="0.37")
    port = (HostPort(address="0.0.0.0", protocol="TCP", port=80),)  # noqa: S104 - any address
    high = make_pods(3, "high", cpu="500m", memory="14Gi", priority=100)
    low = make_pods(3, "low", cpu=3, memory="6Gi", host_ports=port)
    snapshot = _launched((*high, *low), [fleet], **limits)
    made = plan(snapshot, make_settings(fleet, **limits))
    assert raises(made) == {}
    assert {"high-0", "high-1", "high-2"} < places(made).keys()
    assert {r.code for u in made.unplaceable for r in u.reasons} == {"max-cost"}
