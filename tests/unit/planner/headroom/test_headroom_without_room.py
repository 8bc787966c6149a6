"""Headroom that no node could hold is reported as missing; it had been left out without a word."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.fleet import InstanceOption
from reconciler.model.frozen import FrozenMap
from reconciler.planner.planner import plan
from reconciler.planner.settings import Discovery, Headroom
from tests.builders import (
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

GIB = 2**30
FLEET = make_fleet_settings(cpu=4)
ITEMS = (
    Headroom(sector="primary", cpu_milli=4000, memory_bytes=8 * GIB),
    Headroom(sector="primary", nodes=3),
)


def test_headroom_without_a_group_is_reported() -> None:
    """Nothing said that the config keeps no room: no group had the cluster's tags."""
    items = tuple(replace(item, sector="") for item in ITEMS)
    settings = make_settings(discovery=Discovery(types={}), headroom=items)
    made = plan(make_snapshot(cloud=make_cloud()), settings)
    told = [
        (headroom_plan.asked, headroom_plan.pieces, headroom_plan.missing, headroom_plan.because)
        for headroom_plan in made.headroom
    ]
    assert told == [
        ("4 CPU and 8Gi", 1, 1, "no group is available"),
        ("3 nodes", 3, 3, "no group is available"),
    ]


def test_headroom_of_nodes_of_which_nothing_is_known_is_reported() -> None:
    """A piece without a size fits everywhere: `nodes` had its room on a node without any."""
    unknown = InstanceOption(instance_type="x1", resources=FrozenMap(), usd_per_hour=None)
    fleet = make_fleet_settings(options=(unknown,))
    settings = make_settings(fleet, headroom=ITEMS)
    made = plan(make_snapshot(cloud=make_cloud(make_fleet(fleet))), settings)
    assert [(headroom_plan.pieces, headroom_plan.missing) for headroom_plan in made.headroom] == [
        (1, 1),
        (3, 3),
    ]
    assert {headroom_plan.because for headroom_plan in made.headroom} == {
        "no new node of its fleets is known to have room for it"
    }


@pytest.mark.parametrize("departing", [False, True])
def test_headroom_of_a_sector_whose_fleets_are_to_go_is_reported(*, departing: bool) -> None:
    """A share of what pods ask for is left out only while none runs."""
    fleet = replace(FLEET, departing=departing)
    items = (*ITEMS, Headroom(sector="primary", percent=50))
    settings = make_settings(fleet, headroom=items)
    live = make_cloud(make_fleet(fleet, 1))
    idle = plan(make_snapshot(cloud=live), settings)
    assert [bool(headroom_plan.missing) for headroom_plan in idle.headroom] == [
        departing,
        departing,
    ]
    node, pod = make_node("n", fleet), make_pod("p", node="n", cpu=3)
    used = plan(make_snapshot(node, pod, cloud=live), settings)
    assert [bool(headroom_plan.missing) for headroom_plan in used.headroom] == [departing] * 3
    assert {headroom_plan.because for headroom_plan in used.headroom} == (
        {"no fleet of the sector is available"} if departing else {""}
    )


@pytest.mark.parametrize(
    ("changed", "because"),
    [
        (
            {"max_capacity": 0},
            "every fleet of the sector whose nodes could hold a piece is at its max_capacity",
        ),
        ({"price": "9"}, "max_hourly_usd or raise_limits allow no further node"),
    ],
)
def test_limit_of_the_fleet_that_could_hold_the_piece_is_named(
    changed: dict[str, Any], because: str
) -> None:
    """A smaller fleet had no maximum, and so the money was named as what is missing."""
    large = make_fleet_settings("large", cpu=4, memory="16Gi", **changed)
    small = make_fleet_settings("tiny", cpu=2, memory="4Gi", price="0.05")
    limits = {"headroom": ITEMS[:1], "usd_per_hour_max": Decimal(1)}
    (kept,) = plan(make_snapshot(), make_settings(large, small, **limits)).headroom
    assert (kept.missing, kept.because) == (1, because)
