"""Many pods that all differ: as near the least cost as mixes of nodes filled evenly come."""

from random import Random  # noqa: TID251 - seeded

import pytest

from reconciler.model.cluster import Pod
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import make_fleet_settings, make_pod, make_settings, make_snapshot

FLEETS = tuple(
    make_fleet_settings(
        f"c{cpu}", cpu=cpu, memory=f"{4 * cpu}Gi", pods=58, price=price, over_subscription=0.0
    )
    for cpu, price in ((2, "0.1"), (4, "0.199"), (8, "0.394"), (16, "0.78"))
)


def different(count: int) -> list[Pod]:
    """So many pods, each of a kind of its own."""
    draw = Random(1)
    return [
        make_pod(
            f"p{number}",
            cpu=f"{draw.choice((100, 250, 333, 700, 1100, 1900))}m",
            memory=f"{draw.randint(100, 5000)}Mi",
        )
        for number in range(count)
    ]


def cost(pods: list[Pod], fleets: tuple[FleetSettings, ...]) -> float:
    """What the plan for these pods costs; all of them have a place."""
    made = plan(make_snapshot(*pods), make_settings(*fleets))
    assert made.unplaceable == ()
    return made.cost.hourly_usd_after


@pytest.mark.parametrize("count", [150, 170, 200, 400])
def test_more_fleets_to_choose_from_make_no_plan_much_more_expensive(count: int) -> None:
    """With four fleets 200 pods cost 16 % more than with one of the four alone."""
    pods = different(count)
    alone = min(cost(pods, (fleet,)) for fleet in FLEETS)
    assert cost(pods, FLEETS) <= 1.03 * alone


@pytest.mark.parametrize("count", [200, 400, 700])
def test_resources_that_are_not_the_scarcest_are_packed_by_too(count: int) -> None:
    """Pods were ordered by the scarcest resource alone, and nodes lost a tenth of the others."""
    made = plan(make_snapshot(*different(count)), make_settings(*FLEETS))
    assert made.cost.gap <= 0.06


def test_pods_of_many_zones_find_mixes_in_theirs() -> None:
    """The nodes that are opened first are those that each zone's pods take."""
    draw = Random(2)
    zones = ("us-west-2a", "us-west-2b")
    fleets = [
        make_fleet_settings(
            f"c{cpu}{zone[-1]}", cpu=cpu, memory=f"{4 * cpu}Gi", pods=58, price=price, zone=zone,
            over_subscription=0.0,
        )
        for cpu, price in ((4, "0.199"), (16, "0.78"))
        for zone in zones
    ]  # fmt: skip
    pods = [
        make_pod(
            f"p{number}",
            cpu=f"{draw.choice((100, 250, 333, 700, 1100, 1900))}m",
            memory=f"{draw.randint(100, 5000)}Mi",
            node_selector={"topology.kubernetes.io/zone": zones[number % 2]},
        )
        for number in range(400)
    ]
    made = plan(make_snapshot(*pods), make_settings(*fleets))
    assert made.unplaceable == ()
    assert made.cost.gap <= 0.06
