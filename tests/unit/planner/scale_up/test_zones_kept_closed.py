"""Zones that no node is opened in for lower priorities: spreads of higher ones would count them."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.problem.purchase import PodsWithReservation
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.planner import plan
from reconciler.planner.policies.scale_up import sector_purchases
from reconciler.planner.reserved_places import reserved_places
from reconciler.planner.settings import FleetSettings, Headroom, PlannerSettings
from tests.builders import (
    ZONE,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    requiring,
    spread,
)
from tests.properties.reached import asked_for
from tests.unit.planner.disruption.scale_in.scene import unneeded

A, B, C = "us-west-2a", "us-west-2b", "us-west-2c"


def fleet(zone: str, cpu: int = 4, price: str = "0.20", sector: str = "p") -> FleetSettings:
    """A fleet in one zone; nodes of fewer than 4 CPUs have no room for the pods of `high`."""
    return make_fleet_settings(
        sector=sector, name=f"{sector}-{zone}-{cpu}", zone=zone, cpu=cpu, price=price
    )


FLEETS = (fleet(A), fleet(B), fleet(C, cpu=2, price="0.10"))


def high(count: int = 4, priority: int = 1000) -> tuple[Pod, ...]:
    """Pods of a node each, spread over the zones."""
    rule = (spread(ZONE, 1, app="high"),)
    labels = {"app": "high"}
    return make_pods(count, "high", cpu=3, priority=priority, labels=labels, topology_spread=rule)


def low(**changed: Any) -> Pod:
    """A pod of low priority for the zone in which the others may have no node."""
    return make_pod("low", **{"cpu": "1500m", "node_selector": {ZONE: C}, **changed})


def before(*pods: Pod, fleets: Sequence[FleetSettings] = FLEETS) -> Snapshot:
    """A cluster without nodes."""
    return make_snapshot(*pods, cloud=make_cloud(*map(make_fleet, fleets)))


def planned(snapshot: Snapshot, settings: PlannerSettings) -> tuple[Plan, Snapshot]:
    """The plan, and the cluster while the nodes of it launch."""
    made = plan(snapshot, settings)
    return made, asked_for(snapshot, made)


def placed(made: Plan) -> set[str]:
    """The pods that have a place, of several by the name before the number."""
    return {p.pod.name for p in made.placements}


def codes(made: Plan) -> set[str]:
    """Why the fleet whose nodes would take `low` gives it none."""
    return {r.code for u in made.unplaceable for r in u.reasons if r.fleet.endswith("-2")}


HIGH = {f"high-{n}" for n in range(4)}
IN_ANOTHER_SECTOR = (fleet(A), fleet(B), fleet(C, cpu=2, sector="q"))


@pytest.mark.parametrize(
    ("fleets", "pod"),
    [(FLEETS, low()), (IN_ANOTHER_SECTOR, low(node_selector={"sector": "q"}))],
)
def test_lower_priority_opens_no_zone_while_higher_ones_wait_for_their_nodes(
    fleets: Sequence[FleetSettings], pod: Pod
) -> None:
    """Two of four pods of the highest priority were refused, for good, for the node of one more."""
    settings = make_settings(*fleets)
    snapshot = before(*high(), pod, fleets=fleets)
    for _ in range(3):
        made, snapshot = planned(snapshot, settings)
        assert placed(made) == HIGH
        assert codes(made) == {"higher-priority"}
        assert {f.fleet: f.target for f in made.fleets if f.target} == {
            "p-" + A + "-4": 2,
            "p-" + B + "-4": 2,
        }


def test_lower_priority_that_comes_while_nodes_launch_opens_no_zone() -> None:
    """The places of the higher ones were looked at in the plan that bought them only."""
    settings = make_settings(*FLEETS)
    _, snapshot = planned(before(*high()), settings)
    cluster = replace(snapshot.cluster, pods=(*snapshot.cluster.pods, low()))
    made, _ = planned(replace(snapshot, cluster=cluster), settings)
    assert placed(made) == HIGH


def test_lower_priority_gets_its_node_once_the_higher_ones_run() -> None:
    """It waits for the nodes that launch, not for ever: a spread moves no pod that runs."""
    nodes = [make_node(f"{f.zone}-{n}", f, zone=f.zone) for f in FLEETS[:2] for n in range(2)]
    running = [
        replace(pod, node_name=node.name, phase="Running")
        for pod, node in zip(high(), nodes, strict=True)
    ]
    fleets = [make_fleet(each, n) for each, n in zip(FLEETS, (2, 2, 0), strict=True)]
    of = {each.name: each for each in fleets}
    instances = [make_instance(node, of[node.labels["fleet"]]) for node in nodes]
    cloud = make_cloud(*fleets, instances=instances)
    made = plan(make_snapshot(*nodes, *running, low(), cloud=cloud), make_settings(*FLEETS))
    assert placed(made) == {"low"}


def test_lower_priorities_get_nodes_that_open_no_zone() -> None:
    """Those that may go elsewhere wait for nothing, though a node in the third zone is cheaper."""
    anywhere = make_pods(2, "middle", cpu="1500m", priority=5)
    made = plan(before(*high(), *anywhere, low()), make_settings(*FLEETS))
    assert placed(made) == HIGH | {"middle-0", "middle-1"}


def test_higher_priority_opens_the_zone() -> None:
    """The spread counts the zone then, and the pods of lower priority that it refuses wait."""
    settings = make_settings(*FLEETS)
    made, snapshot = planned(before(*high(), low(priority=2000)), settings)
    assert placed(made) == {"high-0", "high-1", "low"}
    made, _ = planned(snapshot, settings)
    assert placed(made) == {"high-0", "high-1", "low"}


def test_zone_that_money_closes_to_higher_priorities_stays_closed() -> None:
    """A fleet of theirs is there, at a price that the limit does not allow any more."""
    fleets = (fleet(A), fleet(B), fleet(C, price="0.80"), fleet(C, cpu=2))
    settings = make_settings(*fleets, usd_per_hour_max=Decimal("1.00"))
    snapshot = before(*high(), low(node_selector={"fleet": fleets[-1].name}), fleets=fleets)
    for _ in range(3):
        made, snapshot = planned(snapshot, settings)
        assert placed(made) == HIGH
        assert codes(made) == {"higher-priority"}


def test_reserved_places_are_looked_up_for_purchases_that_open_a_zone_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bought for one priority after the other, each purchase looked at all places before it."""
    asked: list[PlanBuilder] = []

    def counting(builder: PlanBuilder) -> list[PodsWithReservation]:
        asked.append(builder)
        return reserved_places(builder)

    monkeypatch.setattr(sector_purchases, "reserved_places", counting)
    fleets = [fleet(zone, sector=sector) for sector in "pq" for zone in (A, B)]
    limits = {"p": {"usd_per_hour_max": Decimal("4.00")}}
    either = requiring("sector", "In", "p", "q")
    pods = [
        replace(pod, labels=FrozenMap({"app": f"a{n}"}))
        for n in range(40)
        for pod in make_pods(
            1,
            f"a{n}",
            cpu=3,
            priority=n,
            topology_spread=(spread(ZONE, 1, app=f"a{n}"),),
            node_affinity=either,
        )
    ]
    settings = make_settings(*fleets, default_sector=None, sectors=limits)
    made = plan(before(*pods, fleets=fleets), settings)
    assert len(placed(made)) == 40
    assert 0 < len(asked) <= 6


HEADROOM = Headroom(sector="q", cpu_milli=1500, memory_bytes=2**30)


def at_work(fleets: Sequence[FleetSettings], counts: Sequence[int], *pods: Pod) -> Snapshot:
    """A cluster with so many nodes of each fleet, named by fleet and number."""
    live = [make_fleet(each, count) for each, count in zip(fleets, counts, strict=True)]
    nodes = [
        (unneeded(f"{each.name}-{n}", each, 7200, zone=each.zone, created_at=ago(7200)), of)
        for each, of in zip(fleets, live, strict=True)
        for n in range(of.target_capacity)
    ]
    instances = [make_instance(node, of) for node, of in nodes]
    cloud = make_cloud(*live, instances=instances)
    return make_snapshot(*(node for node, _ in nodes), *pods, cloud=cloud)


def test_headroom_opens_no_zone_while_pods_wait_for_their_nodes() -> None:
    """It is below every pod: two of four were refused for good, and their nodes stood idle."""
    settings = make_settings(*IN_ANOTHER_SECTOR, headroom=(HEADROOM,))
    snapshot = before(*high(priority=-5), fleets=IN_ANOTHER_SECTOR)
    for _ in range(3):
        made, snapshot = planned(snapshot, settings)
        assert placed(made) == HIGH
        (kept_free,) = made.headroom
        assert kept_free.missing == 1
        assert "topology spreads reject pods that are waiting for their nodes" in kept_free.because
    nodes = [NodeName(f"p-{zone}-4-{n}") for zone in (A, B) for n in range(2)]
    running = [
        replace(pod, node_name=name, phase="Running")
        for pod, name in zip(high(priority=-5), nodes, strict=True)
    ]
    made, _ = planned(at_work(IN_ANOTHER_SECTOR, (2, 2, 0), *running), settings)
    assert [headroom_plan.missing for headroom_plan in made.headroom] == [0]


DEAR = fleet(A, cpu=4, price="0.80", sector="q")


@pytest.mark.parametrize(
    ("changed", "settings", "code"),
    [
        ({}, {"consolidation": True}, "consolidation"),
        ({"expire_after_seconds": 3600.0}, {}, "replacement"),
    ],
    ids=["consolidation", "expiry"],
)
@pytest.mark.parametrize("waits", [True, False])
def test_node_in_the_place_of_another_opens_no_zone_while_pods_wait_for_their_nodes(
    changed: dict[str, Any], settings: dict[str, Any], code: str, waits: bool
) -> None:
    """A cheaper node for one that runs took their places from pods of any priority."""
    old = replace(DEAR, max_capacity=1, scale_in=ScaleInSettings(), **changed)
    fleets = (*IN_ANOTHER_SECTOR, old)
    works = make_pod("works", cpu="1500m", node_selector={"sector": "q"}, node=f"{old.name}-0")
    pods = high() if waits else ()
    made, _ = planned(
        at_work(fleets, (0, 0, 0, 1), works, *pods), make_settings(*fleets, **settings)
    )
    assert placed(made) == (HIGH if waits else set())
    targets = {f.fleet: f.target for f in made.fleets}
    assert targets[IN_ANOTHER_SECTOR[2].name] == (0 if waits else 1)
    (told,) = [each for each in made.kept if each.node == f"{old.name}-0"]
    assert ("make topology spreads reject pods" in told.detail) == waits
    assert not waits or told.code == code
