"""Pods that anti-affinity keeps out of some of the zones in which EC2 may start a node."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    ZONE,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
)
from tests.properties.reached import asked_for
from tests.unit.planner.placed import bought

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
FLEET = make_fleet_settings(zones=ZONES)
APART: dict[str, Any] = {"labels": {"app": "a"}, "pod_anti_affinity": (near(ZONE, app="a"),)}


def snapshot_with(taken: Sequence[str], waiting: Sequence[Pod], **changed: Any) -> Any:
    """A snapshot with a full node in each of these zones, and a replica on it."""
    nodes = [make_node(f"node-{zone}", FLEET, zone=zone) for zone in taken]
    running = [
        make_pod(f"on-{zone}", node=f"node-{zone}", cpu=4, ready=True, **(changed or APART))
        for zone in taken
    ]
    return make_snapshot(
        *nodes, *running, *waiting, cloud=make_cloud(make_fleet(FLEET, len(nodes)))
    )


def planned(taken: Sequence[str], waiting: Sequence[Pod], **changed: Any) -> Plan:
    """The plan for these waiting pods."""
    return plan(snapshot_with(taken, waiting, **changed), make_settings(FLEET))


@pytest.mark.parametrize(("taken", "count"), [(ZONES[:1], 1), (ZONES[:2], 1), (ZONES, 0)])
def test_replica_gets_a_node_while_a_zone_without_a_replica_is_left(
    taken: Sequence[str], count: int
) -> None:
    """The second replica of three waited until somebody gave a fleet a fixed zone."""
    made = planned(taken, [make_pod("waits", **APART)])
    assert bought(made) == count
    assert len(made.unplaceable) == 1 - count


def test_only_one_node_is_asked_for_at_a_time() -> None:
    """Both could come up in the same zone."""
    made = planned(ZONES[:1], make_pods(2, "waits", **APART))
    assert bought(made) == 1
    (left,) = made.unplaceable
    assert [reason.code for reason in left.reasons] == ["pod-anti-affinity"]


def test_pods_that_others_keep_out_of_a_zone_get_a_node_too() -> None:
    """Only the running pod has the rule."""
    made = planned(
        ZONES[:1],
        [make_pod("waits", labels={"app": "b"})],
        pod_anti_affinity=(near(ZONE, app="b"),),
    )
    assert bought(made) == 1


def test_fleet_in_a_zone_that_suits_comes_first() -> None:
    """It costs more, but its node surely helps."""
    fixed = make_fleet_settings("fixed", zone=ZONES[2], price="0.9")
    before = snapshot_with(ZONES[:1], [make_pod("waits", **APART)])
    clouds = make_cloud(make_fleet(FLEET, 1), make_fleet(fixed, 0))
    made = plan(replace(before, cloud=clouds), make_settings(FLEET, fixed))
    assert [placement.fleet for placement in made.placements] == [fixed.name]


def test_nothing_more_is_bought_while_the_node_launches() -> None:
    """The next plan would buy another until the first has joined."""
    before = snapshot_with(ZONES[:1], [make_pod("waits", **APART)])
    made = plan(before, make_settings(FLEET))
    again = plan(asked_for(before, made), make_settings(FLEET))
    assert bought(again) == 0
    assert [placement.launching for placement in again.placements] == [0]
