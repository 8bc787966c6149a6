"""Instances that EC2 refused to end, as somebody protected them from termination."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.loops.lease.saved_state import with_refused_ends, with_stuck_ends
from reconciler.model.actions import (
    REPLACEMENT_ASKED,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node
from reconciler.model.errors import TerminationProtected
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.saved_state import LostFleet, ProtectedInstance
from reconciler.model.text import rfc3339
from reconciler.planner.planner import plan
from tests.builders import (
    HOME,
    NOW,
    ago,
    kept_proof,
    make_cloud,
    make_cloud_of,
    make_fleet,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.interrupted_nodes import FLEET, begun, targets
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    drained,
    full,
    instance,
    kept,
    make_scene_fleet,
    on,
    planned,
    told,
    unneeded,
    with_instances,
)

CODE = "termination-protected"
HOUR = 3600.0


def refused(node: Node | str, seconds: float = 60) -> dict[str, Any]:
    """Keyword of ClusterState: EC2 refused to end the node's instance some seconds ago."""
    instance = node.instance_id if isinstance(node, Node) else InstanceId(node)
    assert instance is not None
    return {"protected_instances": (ProtectedInstance(instance=instance, at=ago(seconds)),)}


def ends(made: Plan) -> list[tuple[str, bool]]:
    """Instances that the plan ends, each with whether its fleet's target goes down with it."""
    return [(a.instance, a.decrement) for a in made.actions if isinstance(a, TerminateInstance)]


def test_node_whose_drain_ended_in_a_refusal_is_given_back_with_its_part_of_the_target() -> None:
    """It would stay tainted and empty for ever, one target below what the fleet holds."""
    fleet = make_scene_fleet()
    a, b = drained("a", fleet), on("b")
    made = planned(fleet, a, make_node("b", fleet), b, target=1, **refused(a))
    assert told(made, UntaintNode) == ["a"]
    assert {("a", "drain-started", None), ("a", "unneeded-since", None)} <= annotations_set(made)
    assert ends(made) == []
    assert targets(made) == [(1, 2)]


def test_draining_node_with_pods_is_given_back_before_they_move() -> None:
    """Its pods would move away from a node that stays."""
    fleet = make_scene_fleet()
    a = drained("a", fleet)
    made = planned(fleet, a, on("a"), make_node("b", fleet), on("b"), **refused(a, 5 * HOUR))
    assert told(made, UntaintNode) == ["a"]
    assert made.placements == ()


def test_protected_node_takes_no_others_place() -> None:
    """Of the nodes that may leave at once it would be one, for ever, and no other would go."""
    fleet = make_scene_fleet(empty_at_once_max=1)
    a, b = (unneeded(name, fleet, 7200) for name in "ab")
    made = planned(fleet, a, b, make_node("c", fleet), on("c"), **refused(a))
    assert told(made, TaintNode) == ["b"]
    assert kept(made)["a"] == CODE
    (reason,) = [each for each in made.kept if each.node == "a"]
    assert f"--no-disable-api-termination --instance-id {a.instance_id}" in reason.detail
    assert "2026-01-31T12:59:00Z" in reason.detail
    assert made.protected_instances == refused(a)["protected_instances"]


def test_empty_node_is_tried_again_after_an_hour() -> None:
    """Nobody would end it when its protection is over."""
    fleet = make_scene_fleet()
    a = unneeded("a", fleet, 7200)
    for seconds, expected in ((HOUR - 1, []), (HOUR, ["a"]), (5 * HOUR, ["a"])):
        made = planned(fleet, a, make_node("b", fleet), on("b"), **refused(a, seconds))
        assert told(made, TaintNode) == expected
    draining = planned(fleet, drained("a", fleet), make_node("b", fleet), on("b"),
                       **refused(a, HOUR))  # fmt: skip
    assert ends(draining) == [("i-a", True)]


def test_pods_move_away_from_it_only_a_day_later() -> None:
    """They would be evicted every hour for a node that stays."""
    fleet = make_scene_fleet(settle_seconds=0)
    a = unneeded("a", fleet, 7200)
    for seconds, code in ((HOUR, CODE), (24 * HOUR - 1, CODE), (24 * HOUR, None)):
        made = planned(fleet, a, on("a"), make_node("b", fleet), on("b"), **refused(a, seconds))
        assert (kept(made).get("a") == CODE) is (code == CODE)
        assert (told(made, TaintNode) == ["a"]) is (code is None)


def test_what_is_remembered_ends_with_its_instance_and_its_day() -> None:
    """The Lease would keep instances that are long gone."""
    fleet = make_scene_fleet()
    a = make_node("a", fleet)
    assert planned(fleet, a, **refused("i-gone")).protected_instances == ()
    assert planned(fleet, a, **refused(a, 24 * HOUR)).protected_instances == ()
    (ahead,) = planned(fleet, a, **refused(a, -500)).protected_instances
    assert ahead.at == NOW
    away = replace(make_cloud(make_fleet(fleet, 1)), silent=frozenset({fleet.regions[0]}))
    assert len(planned(fleet, a, cloud=away, **refused("i-1")).protected_instances) == 1


def test_refusal_is_remembered_and_is_no_end_of_a_stuck_instance() -> None:
    """The program would ask again in each cycle, or use up the limit of the hour."""
    made = with_instances(1, 7200)
    (end,) = [a for a in made.actions if isinstance(a, TerminateInstance)]
    assert len(made.stuck_ends) == 1
    for decrement in (False, True):
        action = replace(end, decrement=decrement)
        outcome = Outcome(action=action, kind="refused", error=TerminationProtected.__name__)
        after = with_refused_ends(with_stuck_ends(made, [outcome]), [outcome])
        assert after.stuck_ends == ()
        assert after.protected_instances == (ProtectedInstance(instance=end.instance, at=NOW),)
    other = Outcome(action=end, kind="refused", error="Refused")
    assert with_refused_ends(made, [other]).protected_instances == ()


@pytest.mark.parametrize(("seconds", "bought"), [(60, [(2, 3)]), (HOUR, [])])
def test_pods_wait_for_no_instance_that_stays_dead(
    seconds: float, bought: list[tuple[int, int]]
) -> None:
    """It is replaced only when it is ended, and it is not even asked for."""
    fleet = make_scene_fleet()
    a, live = make_node("a", fleet), make_fleet(fleet, 2)
    dead = instance(live, "i-dead", 7200)
    cloud = make_cloud(live, instances=[make_instance(a, live), dead])
    pods = (full("a"), make_pod(cpu="3"))
    made = planned(fleet, a, *pods, cloud=cloud, relists=9, **refused("i-dead", seconds))
    assert targets(made) == bought


def test_instance_of_a_lost_fleet_is_held_too() -> None:
    """Nothing else would tell that it runs on, and EC2 would be asked in each cycle."""
    dead = FleetId("fleet-dead")
    live, tags = make_fleet(FLEET), FrozenMap({"cluster": "c", "fleet": FLEET.name})
    left = replace(instance(make_fleet(FLEET, 1, id=dead), "i-old", 7200), tags=tags)
    cloud = make_cloud(live, instances=[left])
    state = kept_proof(live) | {"lost_fleets": (LostFleet(id=dead, region=HOME, since=ago(7200)),)}
    for seconds, swept in ((60, []), (HOUR, [("i-old", False)])):
        found = make_snapshot(cloud=cloud, **state, **refused("i-old", seconds))
        made = plan(found, make_settings(FLEET))
        assert ends(made) == swept
        assert [each.code for each in made.held] == ([] if swept else [CODE])


def test_instance_that_never_joined_is_held() -> None:
    """Its end would be asked for in each cycle."""
    made = with_instances(2, 7200, **refused("i-0"))
    assert ends(made) == [("i-1", False)]
    assert [(each.instance, each.code) for each in made.held] == [("i-0", CODE)]
    assert ends(with_instances(1, 7200, **refused("i-0", HOUR))) == [("i-0", False)]


@pytest.mark.parametrize(("seconds", "expected"), [(60, []), (HOUR, [("i-dead", False)])])
def test_silent_node_is_asked_for_again_after_an_hour(
    seconds: float, expected: list[tuple[str, bool]]
) -> None:
    """EC2 would be asked in each cycle for as long as its kubelet is dead."""
    fleet = make_scene_fleet()
    dead = make_node("dead", fleet, ready=False, ready_changed_at=ago(3000))
    others = [make_node(name, fleet) for name in "ab"]
    made = planned(fleet, dead, *others, on("a"), on("b"), on("dead"), relists=2,
                   **refused(dead, seconds))  # fmt: skip
    assert ends(made) == expected
    assert expected or kept(made)["dead"] == CODE


def test_interrupted_node_is_emptied_and_left_to_ec2() -> None:
    """The target would go down in each cycle until EC2 ends the node, which it does by itself."""
    a = begun("a", annotations={REPLACEMENT_ASKED: rfc3339(ago(10))})
    b = make_node("b", FLEET)
    cloud = make_cloud_of([a, b], make_fleet(FLEET, 2))
    free = plan(make_snapshot(a, b, on("b"), cloud=cloud), make_settings(FLEET))
    assert ends(free) == [("i-a", True)]
    made = plan(make_snapshot(a, b, on("b"), cloud=cloud, **refused(a)), make_settings(FLEET))
    assert (ends(made), targets(made), told(made, UntaintNode)) == ([], [], [])
    assert kept(made)["a"] == "interrupted"
