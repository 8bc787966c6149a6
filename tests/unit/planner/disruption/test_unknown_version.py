"""A rolling update while EC2 does not return the number of the fleet's launch template version."""

from typing import Any

import pytest

from reconciler.model.actions import DRAIN_STARTED, EvictPod
from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.text import rfc3339
from tests.builders import ago
from tests.unit.planner.disruption.interrupted_nodes import targets
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    full,
    kept,
    make_scene_fleet,
    on,
    told,
)
from tests.unit.planner.disruption.updated_fleet import (
    NEW,
    OLD,
    TAINT,
    made_of,
    marked,
    node,
    remembered,
    state,
    watched,
)
from tests.unit.planner.placed import drained

OBJECTS: list[Node | Pod] = [node("a"), node("b"), full("a"), full("b")]


def unknown(
    *objects: Node | Pod, word: str = "$Latest", types: tuple[str, ...] = (), **changed: Any
) -> Plan:
    """The plan of a cycle in which only the word is known by which the fleet names its version."""
    shown = {"launch_template_version": word, "instance_types": types}
    return made_of(*objects, live=shown, **changed)


@pytest.mark.parametrize("word", ["$Latest", "$Default"])
def test_halt_outlasts_a_cycle_without_the_number(word: str) -> None:
    """One failed DescribeLaunchTemplates let a version go on that does not work."""
    known = remembered(halted_version=NEW, halted_because="it did not work")
    made = unknown(*OBJECTS, word=word, fleet_states=known)
    assert (state(made), made.updates[0].version) == ("halted", NEW)
    assert made.updates[0].because == "it did not work"
    (saved,) = [m for m in made.fleet_states if m.halted_version]
    assert (saved.halted_version, saved.halted_because) == (NEW, "it did not work")
    again = made_of(*OBJECTS, fleet_states=made.fleet_states)
    assert (state(again), marked(again)) == ("halted", {})


def test_lifted_halt_stays_lifted_in_a_cycle_without_the_number() -> None:
    """The update that a person had let go on was halted by the same sign again."""
    made = unknown(*OBJECTS, fleet_states=remembered(resumed_version=NEW))
    assert [m.resumed_version for m in made.fleet_states] == [NEW]


def test_halted_update_can_be_resumed_while_the_number_is_unknown() -> None:
    """Whoever lacks the right to read launch templates could never lift a halt."""
    known = remembered(halted_version=NEW, halted_because="it did not work")
    made = unknown(*OBJECTS, fleet_states=known, resumed_updates=("primary-small",))
    (saved,) = [m for m in made.fleet_states if m.resumed_version]
    assert (saved.halted_version, saved.resumed_version) == ("", NEW)


def test_batch_waits_while_the_number_is_unknown() -> None:
    """The marks went, or nodes were asked for once more beside those that had come."""
    batch: list[Node | Pod] = [node("a", mark=1), node("b"), node("c", 120, ready=False)]
    made = unknown(*batch, full("a"), full("b"), target=3)
    assert (state(made), made.updates[0].version) == ("paused", NEW)
    assert "EC2 does not return the number" in made.updates[0].because
    assert (marked(made), targets(made), drained(made)) == ({}, [], [])
    assert kept(made)["a"] == "replacement"


def test_drain_of_a_batch_goes_on_while_the_number_is_unknown() -> None:
    """A drain that is half done is the worst state for its pods."""
    started = {DRAIN_STARTED: rfc3339(ago(30))}
    going = node("a", mark=1, began=300, taints=(TAINT,), annotations=started)
    made = unknown(going, node("b"), full("b"), on("a", "left"), node("c", 120), target=3)
    assert told(made, EvictPod) == ["left"]
    assert marked(made) == {}


def test_new_node_of_a_batch_is_not_idle_while_the_number_is_unknown() -> None:
    """It was ended before the pods for which it had come could move to it."""
    batch: list[Node | Pod] = [node("a", mark=1), node("b"), node("c", 120)]
    made = unknown(*batch, full("a"), full("b"), target=3)
    assert "unneeded-since" not in {key for name, key, _ in annotations_set(made) if name == "c"}


def test_no_batch_begins_while_the_number_is_unknown() -> None:
    """Its new nodes looked like the old ones, and others were asked for each time."""
    made = unknown(*OBJECTS, types=("m7g.large",))
    assert (state(made), marked(made), targets(made)) == ("paused", {}, [])
    assert kept(made)["a"] == "rolling-update"


EXPIRING = make_scene_fleet(expire_after_seconds=86_400.0)
EXPIRED = [node(name, 3 * 86_400, fleet=EXPIRING) for name in ("a", "b", "p")]


def expiring(states: tuple[SavedFleetState, ...], *objects: Node | Pod) -> Plan:
    """The plan of three expired nodes with pods, and others of version 8."""
    new = " ".join(each.name for each in objects if isinstance(each, Node))
    pods = [full(each.name) for each in EXPIRED]
    return unknown(*EXPIRED, *pods, *objects, new=new, fleet=EXPIRING, fleet_states=states)


NEW_NODE: tuple[Node | Pod, ...] = (node("c", 900, fleet=EXPIRING), on("c", cpu="2500m"))


def test_canary_outlasts_cycles_without_the_number() -> None:
    """Expired nodes were replaced by nodes of the version whose first one was still watched."""
    made = expiring(watched(100), *NEW_NODE)
    assert (state(made), made.updates[0].version) == ("canary", NEW)
    assert "EC2 does not return the number" in made.updates[0].because
    assert (targets(made), marked(made), drained(made)) == ([], {}, [])
    assert kept(made)["a"] == "rolling-update"
    assert [m.canary_since for m in made.fleet_states if m.canary_version] == [ago(100)]


def test_batch_of_a_canary_outlasts_cycles_without_the_number() -> None:
    """Its node had not joined yet, and the expired ones had others asked for."""
    marks = node("m", 3 * 86_400, mark=1, fleet=EXPIRING)
    made = unknown(marks, full("m"), fleet=EXPIRING, fleet_states=remembered(canary_version=NEW))
    assert (state(made), targets(made)) == ("canary", [])


@pytest.mark.parametrize(
    ("states", "objects"),
    [
        (remembered(canary_version=NEW, canary_since=ago(9000), canary_proven=True), NEW_NODE),
        (remembered(canary_version=NEW), ()),
        (remembered(canary_version=OLD, canary_since=ago(100)), ()),
    ],
    ids=["proven", "not-begun", "finished"],
)
def test_expired_nodes_go_on_without_the_number_when_no_canary_is_watched(
    states: tuple[SavedFleetState, ...], objects: tuple[Node | Pod, ...]
) -> None:
    """Whoever lacks the right to read launch templates would keep all nodes for good."""
    made = expiring(states, *objects)
    assert made.updates == ()
    assert len(targets(made)) == 1
