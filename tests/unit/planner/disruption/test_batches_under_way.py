"""Batches of a rolling update that have to wait, or that something else comes in between of."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.model.actions import (
    INTERRUPTION,
    ROLLING_UPDATE,
    UNNEEDED_SINCE,
    EvictPod,
    TaintNode,
)
from reconciler.model.cluster import Node, Pod
from reconciler.model.fleet import TEMPLATE_ID_TAG
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import DisruptionBudget, RollingUpdate
from reconciler.planner.planner import plan
from tests.builders import (
    HOME,
    ago,
    kept_proof,
    make_cloud,
    make_fleet,
    make_instance,
    make_settings,
    make_snapshot,
)
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
    FLEET,
    NEW,
    RULES,
    TAINT,
    made_of,
    marked,
    node,
    remembered,
)
from tests.unit.planner.placed import drained


def test_node_that_drains_at_last_stays_in_its_batch() -> None:
    """After a pause of the program it rested while its drain began, and the next batch with it."""
    objects = [node("a", 9000, mark=1, began=1800), node("c", 1500), node("b", 8000)]
    made = made_of(*objects, full("a"), full("b"), new="c")
    assert drained(made) == ["a"]
    assert told(made, EvictPod) == ["full-a"]
    assert marked(made) == {}
    assert {key for name, key, _ in annotations_set(made) if name == "a"} == {"drain-started"}


@pytest.mark.parametrize(
    ("began", "closed", "goes"),
    [(60, False, False), (899, False, False), (900, False, True), (60, True, True)],
)
def test_batch_that_gets_no_new_node_holds_up_nothing_else(
    began: float, closed: bool, goes: bool
) -> None:
    """A fleet without capacity used the cluster's budget up for as long as it had none."""
    until = ago(-300) if closed else None
    idle = node("c", 9000, annotations={UNNEEDED_SINCE: rfc3339(ago(3600))})
    made = made_of(
        *(node("a", 9000, mark=1, began=began), node("b"), idle, full("a"), full("b")),
        new="c",
        fleet_states=(SavedFleetState(fleet=FLEET.name, region=HOME, unavailable_until=until),),
        settings={"disruption_budgets": (DisruptionBudget(nodes=1),)},
    )
    assert told(made, TaintNode) == (["c"] if goes else [])
    assert kept(made)["a"] == "replacement"
    assert marked(made) == {}


@pytest.mark.parametrize(("new", "rules"), [("c", None), ("a b c", RULES), ("a b c", None)])
def test_mark_of_no_update_is_taken_off(new: str, rules: RollingUpdate | None) -> None:
    """Switched on again a day later, the update drained the node at once, at any time of day."""
    batch = [node("a", 9000, mark=1), node("b", 8000, mark=2, taints=(TAINT,))]
    made = made_of(*batch, node("c", 300), full("a"), full("b"), new=new, rules=rules)
    assert marked(made) == {"a": None}
    assert drained(made) == []


@pytest.mark.parametrize(("number", "leaves"), [(1, True), (2, False)])
def test_node_that_cannot_be_emptied_leaves_its_batch_though_other_nodes_join(
    number: int, leaves: bool
) -> None:
    """Demand added a node to the fleet every ten minutes, and no other batch ever began."""
    nodes = [node("a", 90_000, mark=number, began=7800), node("b", 90_000), node("c", 7200)]
    kept_by_its_pod = on("a", "bare", "2500m", owner=None)
    objects: list[Node | Pod] = [*nodes, kept_by_its_pod, full("b"), on("c")]
    made = made_of(*objects, node("d", 300), full("d"), node("e", 60), full("e"), new="c d e")
    assert marked(made) == ({"a": None} if leaves else {})


def test_batch_waits_for_ec2_to_tell_what_its_nodes_were_launched_from() -> None:
    """An answer without their versions ended the update of a fleet in its middle."""
    batch = node("a", 9000, mark=1)
    live = make_fleet(FLEET, 1, launch_template_id="lt-1", launch_template_version=NEW)
    instances = [make_instance(batch, live, launch_template_version="")]
    cloud = make_cloud(live, instances=instances, instances_known=True)
    snapshot = make_snapshot(batch, full("a"), cloud=cloud, **kept_proof(live))
    made = plan(snapshot, make_settings(FLEET, rolling_update=RULES))
    assert marked(made) == {}


def partly_shown(*nodes: Node, shown: bool, second: str = "4", target: int = 5) -> Plan:
    """The plan of a fleet whose first node is of lt-2 and may not be shown; the others are of lt-1.

    Args:
        nodes: All nodes, which have pods.
        shown: Whether EC2 shows the instance of the first one.
        second: The version of lt-2 from which the fleet launches.
        target: Its target.
    """
    versions = {"launch_template_version": NEW, "further_templates": (("lt-2", second),)}
    live = make_fleet(FLEET, target, launch_template_id="lt-1", **versions)
    found = []
    for number, each in enumerate(nodes):
        tags = FrozenMap({TEMPLATE_ID_TAG: "lt-1" if number else "lt-2"})
        found.append(make_instance(each, live, launch_template_version="7", tags=tags))
    cloud = make_cloud(live, instances=found if shown else found[1:], instances_known=True)
    proven = remembered(canary_version=NEW, canary_since=ago(86_400), canary_proven=True)
    known = {**kept_proof(live), "fleet_states": proven}
    snapshot = make_snapshot(*nodes, *(full(n.name) for n in nodes), cloud=cloud, **known)
    return plan(snapshot, make_settings(FLEET, rolling_update=RULES))


UNSHOWN = [(False, "4"), (True, "$Latest")]


@pytest.mark.parametrize(("shown", "second"), UNSHOWN, ids=["no-instance", "no-version"])
def test_no_second_batch_begins_while_ec2_does_not_show_whether_the_first_is_drifted(
    shown: bool, second: str
) -> None:
    """Twice as many nodes as `max_batch` were under way, and one new node let two of them go."""
    nodes = [node("a", 9000, mark=1), *(node(name, 9000) for name in "bcd")]
    made = partly_shown(*nodes, shown=shown, second=second)
    assert (marked(made), targets(made)) == ({}, [])
    (update,) = made.updates
    assert (update.state, update.old) == ("rolling", 4)


@pytest.mark.parametrize(("shown", "second"), UNSHOWN, ids=["no-instance", "no-version"])
def test_no_node_is_bought_for_a_batch_of_which_ec2_does_not_show_whether_it_is_drifted(
    shown: bool, second: str
) -> None:
    """It may be that its node is no longer to be replaced."""
    nodes = [node("a", 9000, mark=1), *(node(name, 9000) for name in "bcd")]
    made = partly_shown(*nodes, shown=shown, second=second, target=4)
    assert (targets(made), drained(made)) == ([], [])
    (why,) = [each for each in made.kept if each.node == "a"]
    says = "it waits until EC2 shows whether it is still drifted"
    assert why.detail == (says if shown else "EC2 does not show its instance i-a")


@pytest.mark.parametrize("notice", [("rebalance-recommendation", 20), ("terminate", -110)])
@pytest.mark.parametrize("others", [0, 1])
def test_one_node_is_bought_for_a_batch_node_that_ec2_takes_back(
    notice: tuple[str, float], others: int
) -> None:
    """One was asked for because of the notice, and in the same plan another with the batch."""
    action, seconds = notice
    noted = {INTERRUPTION: f"{action}/{rfc3339(ago(seconds))}"}
    fleet = make_scene_fleet(max_capacity=10)
    made = made_of(
        node("a", 9000, mark=1, began=5, annotations=noted, fleet=fleet),
        node("b", 8000, mark=2 * others, began=5, fleet=fleet),
        *(full("a"), full("b")),
        fleet=fleet,
    )
    assert targets(made) == [(2, 3 + others)]


@pytest.mark.parametrize("ahead", [60, -60])
def test_new_node_of_a_batch_is_recognised_though_our_clock_is_wrong(ahead: float) -> None:
    """The API server dates it: with our clock ahead it came too early, and one more was bought."""
    objects: list[Node | Pod] = [node("b"), full("a"), full("b")]
    first = made_of(node("a", 9000), *objects, server_time=ago(ahead))
    ((_, key, mark),) = annotations_set(first)
    assert key == "rolling-update"
    later = 50.0
    came = node("c", ahead - later + 5)
    batch = node("a", 9000, annotations={ROLLING_UPDATE: mark})
    made = made_of(batch, came, *objects, new="c", server_time=ago(ahead - later), at=ago(-later))
    assert drained(made) == ["a"]
    assert targets(made) == []


@pytest.mark.parametrize(("told", "age"), [(None, 0), (100, 60), (0, 60)])
def test_new_node_that_was_there_before_belongs_to_no_later_batch(
    told: float | None, age: float
) -> None:
    """What a server answered a while ago is no reason to drain a node without a new one."""
    rules = RollingUpdate(pause_seconds=0, canary_seconds=0)
    objects: list[Node | Pod] = [node("a", 9000), node("c", age), full("a"), full("c")]
    server_time = None if told is None else ago(told)
    made = made_of(*objects, new="c", rules=rules, server_time=server_time)
    began = 0.0 if told is None else min(told, max(0, age - 1))
    assert ("a", "rolling-update", f"{NEW}/{rfc3339(ago(began))}/1") in annotations_set(made)


@pytest.mark.parametrize("ahead", [30, 86_400])
def test_mark_of_a_clock_that_was_ahead_is_noted_again(ahead: float) -> None:
    """The batch was lost, and was said to have been halted."""
    made = made_of(node("a", 9000, mark=1, began=-ahead), full("a"), target=2)
    assert ("a", "rolling-update", f"{NEW}/{rfc3339(ago(0))}/1") in annotations_set(made)
    assert kept(made)["a"] == "replacement"
    assert targets(made) == []


@pytest.mark.parametrize("empty", [False, True])
def test_fleet_at_its_minimum_asks_for_no_second_node_when_the_first_lets_a_node_go(
    empty: bool,
) -> None:
    """The drain was begun first, and the node was missed as one that could not leave."""
    least = make_scene_fleet(min_capacity=2)
    nodes = [node("b", 9000, fleet=least), node("new", 300, fleet=least)]
    pods = [full("b"), *([] if empty else [on("a", cpu="2500m")])]
    made = made_of(node("a", 9000, mark=1, fleet=least), *nodes, *pods, fleet=least, new="new")
    assert told(made, TaintNode) == ["a"]
    assert targets(made) == []


LEAVES: list[dict[str, Any]] = [
    {"annotations": {INTERRUPTION: f"terminate/{rfc3339(ago(-100))}"}},
    {"annotations": {INTERRUPTION: f"rebalance-recommendation/{rfc3339(ago(20))}"}},
    {"taints": (replace(TAINT, value="a person's"),)},
    {"unschedulable": True},
]


@pytest.mark.parametrize("leaves", LEAVES, ids=["taken-back", "recommended", "drains", "cordoned"])
def test_new_node_that_leaves_is_none_for_which_a_batch_waits(leaves: dict[str, Any]) -> None:
    """The old node was emptied, and the service had one node less than before."""
    objects: list[Node | Pod] = [node("a", 9000, mark=1), node("b"), full("b"), on("a")]
    made = made_of(*objects, node("c", 300, **leaves), new="c")
    assert "a" not in drained(made)
    assert kept(made)["a"] == "replacement"
    made = made_of(*objects, node("c", 300, **leaves), node("d", 60), new="c d")
    assert "a" in drained(made)


@pytest.mark.parametrize(
    ("leaves", "age", "asked"),
    [
        (LEAVES[0], 300, []),
        (LEAVES[1], 300, [(3, 4)]),
        (LEAVES[2], 300, [(3, 4)]),
        (LEAVES[3], 300, []),
        (LEAVES[3], 1200, [(3, 4)]),
    ],
    ids=["its-fleet-replaces-it", "recommended", "drains", "cordoned", "stays-cordoned"],
)
def test_another_new_node_is_asked_for_when_the_first_leaves_unless_one_comes_anyway(
    leaves: dict[str, Any], age: float, asked: list[tuple[int, int]]
) -> None:
    """The batch would wait for ever, or the fleet be one node too large."""
    objects: list[Node | Pod] = [node("a", 9000, mark=1, began=1500), node("b"), full("b"), on("a")]
    made = made_of(*objects, node("c", age, **leaves), new="c")
    assert targets(made) == asked
    assert targets(made_of(*objects, node("c", age, **leaves), new="c", target=4)) == []


@pytest.mark.parametrize(("cordoned", "code"), [(False, "rolling-update"), (True, "idle-time")])
def test_cordoned_new_node_is_not_kept_for_its_batch(cordoned: bool, code: str) -> None:
    """No pod can come to it, and nothing would ever end it."""
    objects: list[Node | Pod] = [node("a", 9000, mark=1), node("b"), full("b"), on("a")]
    made = made_of(*objects, node("c", 300, unschedulable=cordoned), new="c")
    assert kept(made)["c"] == code


def test_node_dated_in_the_last_year_that_there_is_ends_no_plan() -> None:
    """The time of the next batch was counted from it, past the end of the calendar."""
    late = replace(node("b"), created_at=datetime.max.replace(tzinfo=UTC))
    assert marked(made_of(node("a"), late, full("a"), full("b"))).keys() <= {"a", "b"}
