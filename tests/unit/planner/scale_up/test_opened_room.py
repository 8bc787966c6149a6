"""Room on nodes that are there, which a spread closes until another zone has its share."""

from random import Random  # noqa: TID251 - orders are named by their seed
from typing import Any

import pytest

from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    ZONE,
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    spread,
)

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
FLEETS = tuple(
    make_fleet_settings(cpu=8, memory="32Gi", zone=zone, over_subscription=0.0) for zone in ZONES
)
NODES = tuple(
    make_node(f"n{fleet.zone[-1]}", fleet, zone=fleet.zone) for fleet in FLEETS if fleet.zone
)
EVEN: dict[str, Any] = {"labels": {"app": "w"}, "topology_spread": (spread(ZONE, app="w"),)}
RUNS: dict[str, Any] = {"created_at": ago(3000), "started_at": ago(3000)}
OLD = tuple(make_pod(f"old-{n.name}", node=n.name, cpu="500m", **EVEN, **RUNS) for n in NODES)
FULL = make_pod("full", node="nc", cpu="7400m", **RUNS)


def targets(made: Plan) -> list[int]:
    """What the fleets of zones a, b and c are asked for."""
    return [fleet.target for fleet in made.fleets]


@pytest.mark.parametrize("count", [3, 6, 9])
def test_spread_buys_in_the_zone_that_is_full_alone(count: int) -> None:
    """Nodes were bought in every zone, although two of them had room for their share."""
    objects: list[Pod | Node] = [*make_pods(count, "w", cpu="1", **EVEN), *NODES, *OLD, FULL]
    made = plan(make_snapshot(*objects), make_settings(*FLEETS))
    assert targets(made) == [1, 1, 2]
    assert made.unplaceable == ()
    Random(count).shuffle(objects)
    again = plan(make_snapshot(*objects), make_settings(*FLEETS))
    assert sorted(map(str, again.placements)) == sorted(map(str, made.placements))


def test_room_opens_as_launching_capacity_brings_its_zone_its_share() -> None:
    """A node was bought in a zone with room, while the node of the full zone was on its way."""
    cloud = make_cloud_of(
        NODES, *(make_fleet(f, n) for f, n in zip(FLEETS, (1, 1, 2), strict=True))
    )
    pods = make_pods(6, "w", cpu="1", **EVEN)
    made = plan(make_snapshot(*pods, *NODES, *OLD, FULL, cloud=cloud), make_settings(*FLEETS))
    assert targets(made) == [1, 1, 2]
    assert made.unplaceable == ()


def test_pods_left_by_a_purchase_use_room_that_it_opened() -> None:
    """Zones whose fleets may not grow have room, and the pods were said to fit nowhere."""
    fleets = [make_fleet_settings(cpu=8, memory="32Gi", zone=ZONES[2], over_subscription=0.0)]
    fleets += [
        make_fleet_settings(cpu=8, memory="32Gi", zone=zone, over_subscription=0.0, max_capacity=1)
        for zone in ZONES[:2]
    ]
    pods = make_pods(9, "w", cpu="1", **EVEN)
    made = plan(make_snapshot(*pods, *NODES, *OLD, FULL), make_settings(*fleets))
    assert made.unplaceable == ()
    assert sorted(targets(made)) == [1, 1, 2]


def test_pods_that_stay_on_new_nodes_keep_their_room_there() -> None:
    """Others were promised the same room, and one node too few was bought."""
    full = [make_pod(name, node=f"n{name}", cpu="7400m", **RUNS) for name in "bc"]
    others = [
        make_fleet_settings(sector="other", cpu=8, memory="32Gi", zone=zone, over_subscription=0.0)
        for zone in ZONES
    ]
    first = make_pods(3, "w", cpu="3", priority=10, **EVEN)
    later = [*make_pods(2, "x", cpu="6"), make_pod("o", cpu="1", priority=10, sector="other")]
    settings = make_settings(*FLEETS, *others, usd_per_hour_max=1000.0)
    made = plan(make_snapshot(*first, *later, *NODES, *full), settings)
    assert made.unplaceable == ()
    asked = {pod.key: pod.spec.requests["cpu"] for pod in (*first, *later)}
    taken: dict[tuple[object, ...], int] = {}
    for placement in made.placements:
        place = (placement.node, placement.fleet, placement.new_node)
        taken[place] = taken.get(place, 0) + asked[placement.pod]
    assert max(taken.values()) <= 8_000
