"""No other method goes on with a rolling update that is halted, or whose first node is watched."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import INTERRUPTION, UNNEEDED_SINCE
from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.text import rfc3339
from reconciler.planner.settings import FleetSettings
from tests.builders import HOME, ago, make_fleet_settings
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    full,
    kept,
    make_scene_fleet,
    on,
)
from tests.unit.planner.disruption.updated_fleet import NEW, made_of, node
from tests.unit.planner.placed import raised

OLDEST: dict[str, Any] = {"expire_after_seconds": 7200}
TIMED = {UNNEEDED_SINCE: rfc3339(ago(3600))}
FLEET = make_scene_fleet(**OLDEST)
HALTED = SavedFleetState(
    fleet=FLEET.name, region=HOME, halted_version=NEW, halted_because="it did not work"
)


def halted(*objects: Node | Pod, fleet: FleetSettings = FLEET, **changed: Any) -> Plan:
    """The plan while the fleet's update to version 8 is halted."""
    return made_of(*objects, fleet=fleet, fleet_states=(HALTED,), **changed)


@pytest.mark.parametrize("least", [0, 1])
def test_expired_node_of_a_halted_update_stays(least: int) -> None:
    """Within a day every node was of the version that had been found not to work."""
    fleet = make_scene_fleet(min_capacity=least, **OLDEST)
    objects: list[Node | Pod] = [node("a", 9000, fleet=fleet), full("a")]
    assert raised(made_of(*objects, fleet=fleet, rules=None)) == [(FLEET.name, 1, 2)]
    made = halted(*objects, fleet=fleet)
    assert raised(made) == []
    assert kept(made)["a"] == "rolling-update-halted"


def test_empty_expired_node_at_the_minimum_stays_while_its_update_is_halted() -> None:
    """Nothing runs there, and the next pods would run on the version that does not work."""
    fleet = make_scene_fleet(min_capacity=1, **OLDEST)
    made = halted(node("a", 9000, fleet=fleet), fleet=fleet)
    assert raised(made) == []
    assert kept(made)["a"] == "rolling-update-halted"


def test_expired_node_of_a_halted_update_goes_to_another_fleet() -> None:
    """Its pods need not stay where a fleet with a version that works takes them."""
    other = make_fleet_settings("large", cpu=8, memory="32Gi", price="0.20")
    made = halted(node("a", 9000, fleet=FLEET), full("a"), beside=(other,))
    assert raised(made) == [(other.name, 0, 1)]


def test_expired_node_waits_until_the_first_new_node_is_proven() -> None:
    """All that expire within these minutes would be on a version that nobody has seen at work."""
    objects: list[Node | Pod] = [node("a", 9000, fleet=FLEET), full("a"), full("c", "3500m")]
    made = made_of(*objects, node("c", 60, fleet=FLEET), new="c", fleet=FLEET)
    assert raised(made) == []
    assert kept(made)["a"] == "rolling-update"
    made = made_of(*objects, node("c", 700, fleet=FLEET), new="c", fleet=FLEET)
    assert raised(made) == [(FLEET.name, 2, 3)]


def test_node_that_ec2_recommends_to_leave_is_replaced_all_the_same() -> None:
    """EC2 takes its instance soon, and its pods need a place by then."""
    noted = {INTERRUPTION: f"rebalance-recommendation/{rfc3339(ago(20))}"}
    made = halted(node("a", fleet=FLEET, annotations=noted), full("a"))
    assert raised(made) == [(FLEET.name, 1, 2)]


CHEAP = make_fleet_settings("mid", cpu=8, memory="32Gi", price="0.16")
DEAR = make_fleet_settings("big", cpu=8, memory="32Gi", price="0.30")
DOES_NOT_WORK = replace(HALTED, fleet=CHEAP.name)


@pytest.mark.parametrize(("states", "asked"), [((), 1), ((DOES_NOT_WORK,), 0)])
def test_consolidation_buys_no_node_of_a_halted_version(
    states: tuple[SavedFleetState, ...], asked: int
) -> None:
    """To save money a service that works would be moved onto a version that does not."""
    old: list[Node | Pod] = [node("old", fleet=CHEAP), on("old", cpu="7500m")]
    changed: dict[str, Any] = {"fleet_states": states, "settings": {"consolidation": True}}
    one: list[Node | Pod] = [node("d", fleet=DEAR, annotations=TIMED), on("d", cpu="7500m")]
    made = made_of(*old, *one, fleet=DEAR, beside=(CHEAP,), new="d", **changed)
    assert len(raised(made)) == asked
    three: list[Node | Pod] = []
    for name in ("a", "b", "c"):
        three += [node(name, fleet=FLEET), on(name, cpu="2500m")]
    made = made_of(*old, *three, fleet=FLEET, beside=(CHEAP,), new="a b c", **changed)
    assert len(raised(made)) == asked
    sets = [name for name, key, _ in annotations_set(made) if key == "replacement-set"]
    assert sorted(sets) == ["a", "b", "c"] * asked


def test_other_fleet_in_whose_place_a_halted_one_would_come_says_so() -> None:
    """Whoever asks why the more expensive node stays must find the update."""
    dear = replace(DEAR, max_capacity=1, **OLDEST)
    old: list[Node | Pod] = [node("old", fleet=CHEAP), on("old", cpu="7500m")]
    one: list[Node | Pod] = [node("d", 9000, fleet=dear), on("d", cpu="7500m")]
    states = (DOES_NOT_WORK,)
    made = made_of(*old, *one, fleet=dear, beside=(CHEAP,), new="d", fleet_states=states)
    (why,) = [each for each in made.kept if each.node == "d"]
    assert why.code == "rolling-update-halted"
    assert "it did not work" in why.detail
