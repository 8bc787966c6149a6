"""Consolidation buys nothing that turns out to be of no use, again and again (docs/scale-in.md)."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import REPLACEMENT_ASKED, TerminateInstance
from reconciler.model.cluster import Node, Taint
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from tests.builders import ago, amounts, make_fleet_settings, make_node, make_option
from tests.unit.planner.disruption.scale_in.consolidation import LARGE, SMALL, planned, raised
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    drained,
    kept,
    moves,
    on,
    unneeded,
)


def asked_before(count: int, seconds: float, *objects: Any, **changed: Any) -> Plan:
    """The plan for a dear node for which a cheaper one was asked so often, last so long ago."""
    noted = f"{rfc3339(ago(seconds))}/{count}"
    node = unneeded("l", LARGE, annotations={REPLACEMENT_ASKED: noted})
    return planned(node, on("l", cpu="3"), *objects, **changed)


def refusing(seconds: float) -> Node:
    """A cheaper node that came so long ago, and takes no pods for a reason that no config has."""
    taint = Taint(key="team", value="x", effect="NoSchedule")
    return make_node("s", SMALL, created_at=ago(seconds), taints=(taint,))


def test_node_that_ends_in_the_same_plan_is_not_asked_for_again() -> None:
    """Two nodes would come, one of them for nothing, and beyond `max_capacity` for a moment."""
    ending = drained("s", SMALL)
    made = planned(unneeded("l", LARGE), on("l", cpu="3"), ending, small=1)
    assert [a.instance for a in made.actions if isinstance(a, TerminateInstance)]
    assert {f.fleet: f.target for f in made.fleets} == {"primary-small": 1, "primary-large": 1}


def test_purchase_is_noted_on_the_node_that_is_to_go() -> None:
    """A restart would begin to count anew."""
    made = planned(unneeded("l", LARGE), on("l", cpu="3"))
    assert annotations_set(made) == {("l", "replacement-asked", "2026-01-31T12:00:00Z/1")}


def test_purchase_that_ec2_has_not_served_yet_counts_once() -> None:
    """A few refused calls would end consolidation for a day."""
    made = asked_before(2, 60)
    assert raised(made) == [("primary-small", 1, "consolidation")]
    assert annotations_set(made) == set()


@pytest.mark.parametrize(("count", "asks"), [(1, True), (2, False), (3, False)])
def test_nodes_that_came_in_vain_are_asked_for_twice_only(count: int, asks: bool) -> None:
    """A node would be bought every minute, for ever."""
    made = asked_before(count, 300, refusing(200), small=1)
    assert bool(raised(made)) is asks
    noted = ("l", "replacement-asked", f"2026-01-31T12:00:00Z/{count + 1}")
    assert (noted in annotations_set(made)) is asks
    assert kept(made)["l"] == "consolidation"


def test_what_a_rolling_update_asked_for_in_vain_counts_as_well() -> None:
    """The two would forget each other's purchases in turn, without an end."""
    noted = f"{rfc3339(ago(300))}/1/8"
    node = unneeded("l", LARGE, annotations={REPLACEMENT_ASKED: noted})
    made = planned(node, on("l", cpu="3"), refusing(200), small=1)
    assert annotations_set(made) >= {("l", "replacement-asked", "2026-01-31T12:00:00Z/2/8")}


def test_nodes_that_came_in_vain_are_forgotten_after_a_day() -> None:
    """Whoever fixes the image would wait without end."""
    assert raised(asked_before(2, 3600)) == []
    assert raised(asked_before(2, 86_401)) == [("primary-small", 1, "consolidation")]


@pytest.mark.parametrize("pinned", [False, True])
def test_nothing_is_bought_that_pods_of_one_zone_would_crowd(pinned: bool) -> None:
    """The node would come up in the zone of a small pod that has room elsewhere, and be no use."""
    zones = ("us-west-2a", "us-west-2b")
    small = replace(SMALL, zones=zones)
    large = make_fleet_settings("large", cpu=8, memory="32Gi", price="0.19")
    other = make_node("t", labels={"sector": "primary"})
    wants = {"node_selector": {"topology.kubernetes.io/zone": zones[0]}} if pinned else {}
    pods = [on("l", "a", "1100m", **wants), on("l", "b", "3600m")]
    nodes = [unneeded("l", large), other, on("t", cpu="2800m", owner="Job")]
    assert raised(planned(*nodes, *pods, fleets=(small, large))) == []


@pytest.mark.parametrize("equipped", [False, True])
def test_pod_is_not_moved_to_a_node_whose_device_is_only_promised(equipped: bool) -> None:
    """It would wait for a plugin that may never start, and the node that it ran on be gone."""
    gpu = {"nvidia/gpu": 1}
    dear, cheap = (
        make_fleet_settings(
            size, options=(make_option(f"{size}.type", price=price, nvidia__gpu=1),)
        )
        for size, price in (("dear", "1.0"), ("cheap", "0.5"))
    )
    bare = None if equipped else amounts(cpu=4, memory="16Gi", pods=58)
    young = make_node("young", cheap, created_at=ago(30), allocatable=bare)
    objects = (unneeded("dear", dear), on("dear", cpu="3", requests=gpu), young)
    made = planned(*objects, small=1, fleets=(cheap, dear))
    assert moves(made) == ({"on-dear": "young"} if equipped else {})
    assert raised(made) == []


def test_purchase_noted_in_the_future_is_noted_anew() -> None:
    """A clock that was ahead: nodes would be asked for until it has caught up."""
    assert ("l", "replacement-asked", "2026-01-31T12:00:00Z/2") in annotations_set(
        asked_before(2, -9000)
    )


def test_reason_after_nodes_not_emptied_names_no_fleet_and_says_until_when() -> None:
    """It named the fleet that was looked at last, whichever the nodes had come of."""
    dear = replace(LARGE, expire_after_seconds=3600)
    noted = {REPLACEMENT_ASKED: f"{rfc3339(ago(3600))}/2"}
    for fleet, code in ((LARGE, "consolidation"), (dear, "no-destination")):
        node = unneeded("l", fleet, annotations=noted, created_at=ago(9000))
        made = planned(node, on("l", cpu="3"), refusing(200), small=1, fleets=(SMALL, fleet))
        (why,) = [each for each in made.kept if each.node == "l"]
        assert why.code == code
        assert why.detail == (
            "2 nodes came to replace it, and it could not be emptied: no more are asked for "
            "before 2026-02-01T11:00:00Z"
        )
