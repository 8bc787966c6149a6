"""Spreads over zones beside pods for which the same plan opens another zone."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.cluster import HostPort, Pod, Taint, Toleration
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOSTNAME,
    ZONE,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    requiring,
    spread,
)

A, B, C = "us-west-2a", "us-west-2b", "us-west-2c"


EVERY_ZONE = replace(spread(ZONE, 1, app="web"), honor_node_affinity=False)


def fleet(zone: str, sector: str = "a") -> FleetSettings:
    """A fleet of nodes of 4 CPU in one zone."""
    return make_fleet_settings(zone=zone, name=f"{sector}-{zone}", sector=sector)


def planned(*pods: Pod, fleets: tuple[FleetSettings, ...], owed: Plan | None = None) -> Plan:
    """The plan on an empty cluster, in which the nodes of an earlier plan may be on their way."""
    targets = {f.fleet: f.target for f in owed.fleets} if owed is not None else {}
    cloud = make_cloud(*(make_fleet(each, target=targets.get(each.name, 0)) for each in fleets))
    return plan(make_snapshot(*pods, cloud=cloud), make_settings(*fleets))


def web(count: int = 6, **changed: Any) -> tuple[Pod, ...]:
    """Pods of a node each, spread over the zones."""
    return make_pods(count, "web", cpu=3, labels={"app": "web"}, **changed)


def placed(made: Plan) -> set[str]:
    """The pods that have a place."""
    return {p.pod.name for p in made.placements}


def test_zone_that_other_pods_open_counts_for_a_spread_that_counts_every_zone() -> None:
    """Nodes would be bought for pods that kube-scheduler refuses once the third zone is there."""
    fleets = tuple(fleet(zone) for zone in (A, B, C))
    pods = (
        *web(
            topology_spread=(EVERY_ZONE,),
            node_affinity=requiring(ZONE, "In", A, B),
        ),
        make_pod("other", cpu=1, node_selector={ZONE: C}),
    )
    made = planned(*pods, fleets=fleets)
    assert placed(made) == {"web-0", "web-1", "other"}
    assert sum(f.target for f in made.fleets) == 3
    assert placed(planned(*pods, fleets=fleets, owed=made)) == placed(made)


def test_zones_that_nobody_opens_do_not_count() -> None:
    """A spread over two zones must not wait for a third one that has no node."""
    fleets = tuple(fleet(zone) for zone in (A, B, C))
    made = planned(
        *web(
            topology_spread=(EVERY_ZONE,),
            node_affinity=requiring(ZONE, "In", A, B),
        ),
        fleets=fleets,
    )
    assert len(placed(made)) == 6


def test_zone_of_another_sector_counts_for_a_spread() -> None:
    """The plan must not promise places that go once the node of the other sector comes up."""
    fleets = (fleet(A), fleet(B), fleet(C, "b"))
    pods = (
        *web(topology_spread=(spread(ZONE, 1, app="web"),)),
        make_pod("other", cpu=1, node_selector={"sector": "b"}),
    )
    made = planned(*pods, fleets=fleets)
    assert len(placed(planned(*pods, fleets=fleets, owed=made))) == len(placed(made))


def test_nodes_bought_beside_counted_zones_keep_their_over_subscription() -> None:
    """What a node of pods that share it counts less was counted less on the next node instead."""
    fleets = [
        make_fleet_settings(f"of-{cpu}", zone=zone, sector="a", cpu=cpu, price=price)
        for zone, cpu, price in ((A, 4, "0.10"), (B, 4, "0.10"), (C, 4, "0.10"), (A, 8, "0.20"))
    ]
    fleets = [replace(each, over_subscription=0.2) for each in fleets]
    fleets.append(make_fleet_settings(zone=A, sector="b", price="1.00", over_subscription=0.2))
    pods = (
        *web(topology_spread=(EVERY_ZONE,), node_affinity=requiring(ZONE, "In", A, B)),
        make_pod("other", cpu=3, node_selector={ZONE: C}),
        make_pod("leader", cpu=6, labels={"app": "leader"}),
        make_pod("next", cpu="1500m", pod_affinity=(near(HOSTNAME, app="leader"),)),
        make_pod("later", cpu="600m", node_affinity=requiring("sector", "In", "a", "b")),
    )
    made = plan(make_snapshot(*pods), make_settings(*fleets))
    assert placed(made) == {"web-0", "web-1", "other", "leader", "next", "later"}
    node_of = {p.pod.name: (p.fleet, p.new_node) for p in made.placements}
    assert node_of["leader"] == node_of["next"]
    assert list(node_of.values()).count(node_of["later"]) == 1


def test_pods_are_withdrawn_from_every_zone_that_has_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where no purchase holds, those withdrawn in one zone must not excuse those of another."""
    monkeypatch.setattr("reconciler.planner.capacity.consistent_spreads.TRIES", 0)
    fleets = tuple(fleet(zone) for zone in (A, B, C))
    pods = (
        *web(20, topology_spread=(EVERY_ZONE,), node_affinity=requiring(ZONE, "In", A, B)),
        make_pod("other", cpu=1, node_selector={ZONE: C}),
    )
    made = planned(*pods, fleets=fleets)
    assert {p.fleet for p in made.placements} == {f"a-{zone}" for zone in (A, B, C)}
    assert len(made.placements) == 3
    assert {f.target for f in made.fleets} == {1}
    refused = {r.code for u in made.unplaceable for r in u.reasons if r.fleet != f"a-{C}"}
    assert refused == {"topology-spread"}


def test_pod_is_not_withdrawn_for_others_that_come_after_it() -> None:
    """Those that its spread counts have a lower priority: kube-scheduler binds it first."""
    taint = Taint(key="dedicated", value="x", effect="NoSchedule")
    fleets = (replace(fleet(A), taints=(taint,)), fleet(C))
    pods = (
        make_pod("first", cpu=1, priority=100, topology_spread=(spread(ZONE, 1, app="low"),)),
        *make_pods(2, "low", cpu=1, labels={"app": "low"}),
        make_pod(
            "opener",
            cpu=1,
            node_selector={ZONE: A},
            tolerations=(Toleration(key="dedicated", operator="Exists"),),
        ),
    )
    assert placed(planned(*pods, fleets=fleets)) == {"first", "low-0", "low-1", "opener"}


def test_zone_that_is_opened_after_pods_of_one_node_counts_for_their_spread() -> None:
    """Pods that must share a node get theirs first: what comes then must not refuse them."""
    fleets = tuple(
        make_fleet_settings(
            zone=zone, name=zone, cpu=2, memory="8Gi", pods=10, over_subscription=0.0
        )
        for zone in (B, C)
    )
    pods = (
        make_pod("more", namespace="db", cpu=1),
        *make_pods(
            2,
            "follower",
            cpu="250m",
            labels={"app": "y"},
            pod_affinity=(near(HOSTNAME, app="y"),),
            topology_spread=(spread(ZONE, 1, app="y"),),
            host_ports=(HostPort(address="10.0.0.1", protocol="TCP", port=81),),
        ),
        *make_pods(2, "leader", cpu="250m", memory="4Gi", labels={"app": "y"}),
        *make_pods(2, "other", cpu=1),
    )
    made = planned(*pods, fleets=fleets)
    zones = {zone: {p.pod.name for p in made.placements if p.fleet == zone} for zone in (B, C)}
    assert zones[C] == {"other-1"}
    assert zones[B] >= {"leader-0", "leader-1"}
    assert len(zones[B] & {"follower-0", "follower-1"}) == 1
    later = planned(*pods, fleets=fleets, owed=made)
    assert placed(later) == {pod.key.name for pod in pods}
