"""A place that a fleet was asked for in the place of one node is no room for another to go."""

from dataclasses import replace

import pytest

from reconciler.model.actions import REPLACEMENT_ASKED, UNNEEDED_SINCE
from reconciler.model.cluster import Node
from reconciler.model.frozen import FrozenMap
from reconciler.model.text import rfc3339
from tests.builders import ago, make_node
from tests.unit.planner.disruption.interrupted_nodes import targets
from tests.unit.planner.disruption.scale_in.scene import full, kept, make_scene_fleet, planned
from tests.unit.planner.disruption.updated_fleet import made_of, node
from tests.unit.planner.placed import drained

FLEET = make_scene_fleet(min_capacity=2)
DAY = 86_400.0


def idle(name: str) -> Node:
    """A node that has been empty for an hour."""
    return node(name, fleet=FLEET, annotations={UNNEEDED_SINCE: rfc3339(ago(3600))})


def test_room_that_was_asked_for_a_batch_lets_no_idle_node_go() -> None:
    """The node of the batch could not leave then, and after two such batches not for a day."""
    batch = node("a", 9000, fleet=FLEET, mark=1, began=60)
    made = made_of(batch, idle("i"), full("a"), new="i", fleet=FLEET, target=3)
    assert drained(made) == []
    assert kept(made)["i"] == "min-capacity"
    came = node("n", 30, fleet=FLEET)
    made = made_of(batch, idle("i"), came, full("a"), new="i n", fleet=FLEET, target=3)
    assert drained(made) == ["a"], "it goes when its new node has come"


def test_idle_node_goes_that_its_fleet_can_do_without_beside_a_batch() -> None:
    """Only what was asked for in the place of another is kept."""
    batch = node("a", 9000, fleet=FLEET, mark=1, began=60)
    nodes = [batch, idle("i"), idle("j")]
    made = made_of(*nodes, full("a"), new="i j", fleet=FLEET, target=4)
    assert len(drained(made)) == 1


@pytest.mark.parametrize(("seconds", "gone"), [(60, ["a"]), (3600, ["i"])])
def test_room_that_was_asked_for_an_expired_node_is_kept_for_half_an_hour(
    seconds: float, gone: list[str]
) -> None:
    """Each plan ended an idle node, and asked for another in the place of the expired one."""
    fleet = replace(FLEET, expire_after_seconds=DAY)
    asked = FrozenMap({REPLACEMENT_ASKED: f"{rfc3339(ago(seconds))}/1"})
    old = make_node("a", fleet, created_at=ago(2 * DAY), annotations=asked)
    came = make_node("n", fleet)
    made = planned(fleet, old, idle("i"), came, full("a", "3900m"), full("n", "1500m"), target=3)
    assert drained(made) == gone


def test_batch_that_a_higher_minimum_holds_has_one_more_node_asked_for() -> None:
    """It would be given up after a quarter of an hour, as if the new node had not helped."""
    fleet = replace(FLEET, min_capacity=3)
    batch, came = node("a", 9000, fleet=fleet, mark=1), node("n", 300, fleet=fleet)
    other = node("o", 5000, fleet=fleet)
    made = made_of(batch, came, other, full("a"), full("o"), new="n o", fleet=fleet)
    assert targets(made) == [(3, 4)]
