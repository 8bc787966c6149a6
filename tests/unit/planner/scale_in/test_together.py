"""Consolidation of several nodes into one larger node (behaviour, section 5: fewer nodes)."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import EvictPod, TaintNode
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import ScaleInSettings
from tests.builders import (
    AWAY,
    HOME,
    make_cloud,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.scale_in.consolidation import SMALL, planned, raised
from tests.unit.planner.scale_in.scene import annotations_set, kept, moves, on, told, unneeded

DOUBLE = make_fleet_settings("double", cpu=8, memory="32Gi", price="0.21")
NAMES = ("a", "b", "c")


def pods(cpu: str = "2500m", **changed: Any) -> list[Any]:
    """One on each of the three small nodes: more than half of it."""
    return [on(name, cpu=cpu, **changed) for name in NAMES]


def planned_for(*more: Any, small: int = 3, seconds: float = 3600, **changed: Any) -> Plan:
    """Three small nodes, unneeded for so long, and what else there is."""
    objects = more or pods()
    smalls = [unneeded(name, SMALL, seconds) for name in NAMES]
    return planned(
        *smalls, *objects, small=small, fleets=changed.pop("fleets", (SMALL, DOUBLE)), **changed
    )


def test_one_larger_node_is_asked_for_in_the_place_of_several() -> None:
    """Three nodes, each little more than half used, stay for ever: no pod fits beside another."""
    made = planned_for()
    assert raised(made) == [("primary-double", 1, "consolidation")]
    assert told(made, TaintNode) + told(made, EvictPod) == []
    assert [kept(made)[name] for name in NAMES] == ["consolidation"] * 3
    because = next(a.because for a in made.actions)
    assert because == "a node at 0.21 USD/h can take the pods of a, b, c at 0.3"


def test_it_is_waited_for_not_asked_for_again() -> None:
    """The target would climb with every cycle until the node has joined."""
    made = planned_for(launching=1)
    assert raised(made) == []
    assert told(made, TaintNode) == []
    assert annotations_set(made) == set()
    assert [kept(made)[name] for name in NAMES] == ["consolidation"] * 3


def test_when_it_has_come_they_are_drained_onto_it() -> None:
    """It would stand idle and go, and be asked for again."""
    made = planned_for(*pods(), make_node("d", DOUBLE))
    assert told(made, TaintNode) == ["a"]
    assert moves(made) == {"on-a": "d"}
    assert raised(made) == []


def test_those_that_are_left_follow_the_first() -> None:
    """The first alone would have saved nothing."""
    left = [unneeded(name, SMALL) for name in NAMES[1:]]
    there = [make_node("d", DOUBLE), on("d", "first", "2500m")]
    made = planned(*left, *pods()[1:], *there, small=2, fleets=(SMALL, DOUBLE))
    assert told(made, TaintNode) == ["b"]


@pytest.mark.parametrize(("owner", "goes"), [("ReplicaSet", []), ("Job", ["d"])])
def test_it_does_not_go_as_idle_while_they_may_come(owner: str, goes: list[str]) -> None:
    """It came for pods that wait for their time: ended now it would be bought again."""
    made = planned_for(*pods(owner=owner), unneeded("d", DOUBLE), seconds=300)
    assert told(made, TaintNode) == goes
    assert kept(made).get("d") == (None if goes else "consolidation")


def test_all_of_them_wait_for_their_time() -> None:
    """A dip of some seconds would launch a node."""
    made = planned_for(seconds=30)
    assert raised(made) == []
    assert annotations_set(made) == set()
    begun = planned(*(make_node(n, SMALL) for n in NAMES), *pods(), small=3, fleets=(SMALL, DOUBLE))
    assert raised(begun) == []
    assert {name for name, _, _ in annotations_set(begun)} == set(NAMES)


@pytest.mark.parametrize(("price", "asks"), [("0.286", False), ("0.285", True)])
def test_saving_below_five_percent_is_not_worth_the_disruption(price: str, asks: bool) -> None:
    """Nodes would be replaced for cents."""
    double = make_fleet_settings("double", cpu=8, memory="32Gi", price=price)
    assert bool(raised(planned_for(fleets=(SMALL, double)))) is asks


def test_only_as_many_go_as_it_needs_to_save() -> None:
    """Each that goes is a disruption; the others may follow when they fit."""
    cheap = make_fleet_settings("double", cpu=8, memory="32Gi", price="0.15")
    made = planned_for(fleets=(SMALL, cheap))
    assert [kept(made)[name] for name in NAMES] == ["consolidation"] * 2 + ["no-destination"]


@pytest.mark.parametrize(
    "why",
    [
        {"more": pods(owner="Job")},
        {"more": pods(cpu="2700m")},
        {"small": replace(SMALL, min_capacity=1)},
        {"double": replace(DOUBLE, max_capacity=0)},
        {"consolidation": False},
    ],
    ids=["started Jobs", "no room together", "minimum", "maximum", "not asked for"],
)
def test_nothing_is_asked_for(why: dict[str, Any]) -> None:
    """The node would come in vain, or something be broken that the config promises."""
    small, double = why.pop("small", SMALL), why.pop("double", DOUBLE)
    assert raised(planned_for(*why.pop("more", ()), fleets=(small, double), **why)) == []


def test_limit_of_nodes_that_are_emptied_at_once_counts_them_as_one() -> None:
    """A drain under way is the one; the larger node is asked for when it is over."""
    smalls = [unneeded(name, SMALL) for name in NAMES]
    alone = [unneeded("e", SMALL, 7200), on("e", cpu="500m")]
    stays = [make_node("s", SMALL), on("s", "job", "2500m", owner="Job")]
    made = planned(*smalls, *pods(), *alone, *stays, small=5, fleets=(SMALL, DOUBLE))
    assert told(made, TaintNode) == ["e"]
    assert raised(made) == []
    twice = ScaleInSettings(non_empty_at_once_max=2)
    fleets = (replace(SMALL, scale_in=twice), DOUBLE)
    made = planned(*smalls, *pods(), *alone, *stays, small=5, fleets=fleets)
    assert raised(made) == [("primary-double", 1, "consolidation")]


def test_larger_node_is_not_replaced_again_while_the_others_can_follow() -> None:
    """Its timer may be the older one: it would go, and be bought again, for as long as it lasts."""
    left = [unneeded(name, SMALL, 30) for name in NAMES[1:]]
    there = [unneeded("d", DOUBLE), on("d", "first", "2500m")]
    made = planned(*left, *pods()[1:], *there, small=2, fleets=(SMALL, DOUBLE))
    assert raised(made) == []
    assert kept(made)["d"] == "in-use"
    alone = planned(*there, fleets=(SMALL, DOUBLE))
    assert raised(alone) == [("primary-small", 1, "consolidation")]


def test_node_that_is_launching_and_will_not_do_is_not_bought_again() -> None:
    """The target would climb with every cycle, without end."""
    small = make_fleet_settings("small", price="0.104")
    mid = make_fleet_settings("mid", cpu=6, memory="24Gi", price="0.16")
    large = make_fleet_settings("large", cpu=16, memory="64Gi", price="0.37")
    nodes = [unneeded("s", small), *(unneeded(name, mid) for name in NAMES)]
    sizes = {"s": ("3600m",), "a": ("2500m", "2500m"), "b": ("1700m", "3100m")}
    sizes["c"] = ("3100m", "2500m")
    movable = [on(n, f"{n}-{i}", cpu) for n, each in sizes.items() for i, cpu in enumerate(each)]
    targets = {small: 1, mid: 3}
    for launching in (1, 2, 5):
        lives = [make_fleet(fleet, count) for fleet, count in {**targets, large: launching}.items()]
        cloud = make_cloud_of(nodes, *lives)
        settings = make_settings(small, mid, large, consolidation=True)
        made = plan(make_snapshot(*nodes, *movable, cloud=cloud), settings)
        assert [a for a in raised(made) if a[0] == large.name] == []


def test_fleet_that_has_to_get_rid_of_nodes_is_no_place() -> None:
    """The fleet would be filled anew, and never leave."""
    full_up = replace(DOUBLE, max_capacity=0)
    made = planned_for(*pods(), unneeded("d", DOUBLE), fleets=(SMALL, full_up))
    assert told(made, TaintNode) == ["d"]


def test_nodes_of_two_regions_do_not_become_one() -> None:
    """A node of one region is asked for there, where its pods have their volumes."""
    regions = (HOME, AWAY)
    small, double = (replace(fleet, regions=regions) for fleet in (SMALL, DOUBLE))
    lives = [
        make_fleet(fleet, count, region=region)
        for fleet, counts in ((small, (2, 1)), (double, (0, 0)))
        for region, count in zip(regions, counts, strict=True)
    ]
    nodes = [unneeded("a", small), unneeded("b", small), unneeded("c", small, region=AWAY)]
    owners = [lives[0], lives[0], lives[1]]
    instances = [make_instance(node, live) for node, live in zip(nodes, owners, strict=True)]
    settings = make_settings(small, double, regions=regions, consolidation=True)
    cloud = make_cloud(*lives, instances=instances)
    assert raised(plan(make_snapshot(*nodes, *pods(), cloud=cloud), settings)) == []
