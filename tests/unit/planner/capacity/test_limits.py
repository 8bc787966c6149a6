"""Purchases from fleets that may grow by a few nodes only."""

from random import Random  # noqa: TID251 - draws are named by their seed
from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOSTNAME,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
)


def _cheap_ones_are_few(seed: int) -> tuple[list[Pod], list[FleetSettings]]:
    """Of each of four sizes a fleet that may have up to three nodes, and one four times as dear."""
    draw = Random(seed)
    sizes = draw.sample([1, 2, 3, 4, 6, 8], 4)
    fleets: list[FleetSettings] = []
    for cpu in sizes:
        memory, price = f"{cpu * draw.choice([2, 4, 8])}Gi", 0.05 * cpu
        fleets += [
            make_fleet_settings(
                f"few{cpu}",
                cpu=cpu,
                memory=memory,
                price=f"{price:.3f}",
                max_capacity=draw.randint(1, 3),
            ),
            make_fleet_settings(f"any{cpu}", cpu=cpu, memory=memory, price=f"{4 * price:.3f}"),
        ]
    most = min(max(sizes), 3)
    pods = [
        make_pod(
            f"p{number}",
            cpu=f"{draw.randint(1, 10 * most) * 100}m",
            memory=f"{draw.randint(2, 20 * most) * 100}Mi",
        )
        for number in range(draw.randint(15, 40))
    ]
    return pods, fleets


@pytest.mark.parametrize("seed", [108, 128, 354, 712, 805, 922, 1006])
def test_shares_of_two_nodes_are_not_rounded_up_beyond_the_maximum(seed: int) -> None:
    """A fleet was asked for one node more than its max_capacity."""
    pods, fleets = _cheap_ones_are_few(seed)
    made = plan(make_snapshot(*pods), make_settings(*fleets))
    assert [f.fleet for f in made.fleets if f.max is not None and f.target > f.max] == []
    assert made.unplaceable == ()


@pytest.mark.parametrize("other_fleet", [False, True])
def test_begun_nodes_take_no_second_pod_that_excludes_the_first(other_fleet: bool) -> None:
    """Two pods that exclude each other were promised one node, and no other fleet was asked."""
    fleets = [make_fleet_settings("s", cpu=4, price="0.2", zone="us-west-2a", max_capacity=2)]
    if other_fleet:
        fleets.append(make_fleet_settings("s", cpu=4, price="0.3", zone="us-west-2b"))
    apart = make_pods(
        3,
        "x",
        cpu="100m",
        labels={"app": "x"},
        pod_anti_affinity=(near(HOSTNAME, app="x"),),
    )
    made = plan(make_snapshot(*apart, *make_pods(2, "y", cpu="3500m")), make_settings(*fleets))
    places = [(p.fleet, p.new_node) for p in made.placements if p.pod.name.startswith("x")]
    assert len(places) == len(set(places)) == (3 if other_fleet else 2)
    assert len(made.unplaceable) == (0 if other_fleet else 1)


def _beside(pods: list[Pod], **full: Any) -> Plan:
    """The plan with two fleets, beside a cheaper one if its settings are given."""
    fleets = [
        make_fleet_settings("b", cpu=8, memory="32Gi", price="0.23"),
        make_fleet_settings("c", cpu=16, memory="64Gi", price="0.44"),
    ]
    if full:
        fleets.insert(0, make_fleet_settings("a", cpu=4, memory="16Gi", price="0.10", **full))
    lives = [make_fleet(fleet, 0) for fleet in fleets]
    return plan(make_snapshot(*pods, cloud=make_cloud(*lives)), make_settings(*fleets))


@pytest.mark.parametrize("seed", range(8))
def test_fleet_without_room_widens_no_gap(seed: int) -> None:
    """A proven purchase was stated with a gap of 57 %: the bound counted on nodes of a full fleet.

    An alert on the gap stood for as long as a cheap fleet was at its maximum.
    """
    draw = Random(seed)
    pods: list[Pod] = []
    for kind in range(draw.randint(1, 4)):
        cpu, memory = draw.choice(["300m", "1", "2800m"]), draw.choice(["256Mi", "3Gi", "7Gi"])
        pods += make_pods(draw.randint(1, 8), f"p{kind}", cpu=cpu, memory=memory)
    assert _beside(pods, max_capacity=0).cost == _beside(pods).cost


def test_fleet_that_fills_up_in_the_plan_counts_for_the_bound() -> None:
    """The cheapest purchase uses its last node: a bound without it would be above the cost."""
    pods = list(make_pods(9, cpu=1, memory="1Gi"))
    made = _beside(pods, max_capacity=1)
    assert made.cost.hourly_usd_lower_bound <= made.cost.hourly_usd_after
    assert made.cost.hourly_usd_after == pytest.approx(0.33)
