"""Rolling updates of several fleets at a time: their nodes take turns with those of others."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import (
    DRAIN_FAILED,
    DRAIN_STARTED,
    ROLLING_UPDATE,
    UNNEEDED_SINCE,
    TaintNode,
)
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import DisruptionBudget, RollingUpdate
from reconciler.planner.settings import FleetSettings
from tests.builders import ago
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    kept,
    make_scene_fleet,
    on,
    told,
)
from tests.unit.planner.disruption.updated_fleet import NEW, TAINT, made_of, marked, node
from tests.unit.planner.placed import drained

A = make_scene_fleet(sector="alpha")
B = make_scene_fleet(sector="beta")
C = make_scene_fleet(sector="gamma")
ONE = RollingUpdate(batch_max=1)


def planned(
    *objects: Node | Pod, fleets: tuple[FleetSettings, ...] = (A, B, C), **changed: Any
) -> Plan:
    """The plan of three fleets, of which each may have batches of one node."""
    return made_of(
        *objects, fleet=fleets[0], beside=fleets[1:], rules=changed.pop("rules", ONE), **changed
    )


def used(name: str, fleet: FleetSettings, age: float = 9000, **changed: Any) -> list[Node | Pod]:
    """A node of the fleet, with a pod that leaves no room for another like it."""
    pod = on(name, cpu="2500m", sector=fleet.sector)
    return [node(name, age, fleet=fleet, **changed), pod]


def batch(name: str, fleet: FleetSettings, new: float = 1500) -> list[Node | Pod]:
    """A node whose batch began half an hour ago, and the new node that came in its place."""
    return [*used(name, fleet, mark=1, began=1800), node(f"new-{name}", new, fleet=fleet)]


DRAINING = used("d", B, taints=(TAINT,), annotations={DRAIN_STARTED: rfc3339(ago(30))})
"""A node that is being emptied onto `new-d`."""
NEW_D = node("new-d", fleet=B)


def test_node_that_waits_for_its_turn_stays_in_its_batch() -> None:
    """Behind the drains of other fleets it left its batch, and its new node had come in vain."""
    made = planned(*batch("a", A), *DRAINING, NEW_D, new="new-a new-d")
    assert kept(made)["a"] == "max-non-empty-at-once"
    assert drained(made) == []
    waits = f"{NEW}/{rfc3339(ago(1800))}/1/{rfc3339(ago(0))}"
    assert ("a", "rolling-update", waits) in annotations_set(made)


def test_node_whose_pods_fit_nowhere_leaves_its_batch_while_others_are_emptied() -> None:
    """Where something is emptied all day it seemed to wait for its turn, and no batch began."""
    own = Taint(key="of-new-nodes", value="", effect="NoSchedule")
    old = used("a", A, mark=1, began=1800)
    made = planned(
        *old, node("new-a", 1500, fleet=A, taints=(own,)), *DRAINING, NEW_D, new="new-a new-d"
    )
    assert kept(made)["a"] == "max-non-empty-at-once"
    assert marked(made) == {"a": None}


def test_node_that_a_disruption_budget_keeps_stays_in_its_batch() -> None:
    """A freeze of half an hour cost every batch its new nodes."""
    budget = {"disruption_budgets": (DisruptionBudget(nodes=0),)}
    made = planned(*batch("a", A), new="new-a", settings=budget)
    assert kept(made)["a"] == "disruption-budget"
    assert marked(made) == {"a": "8/1"}


@pytest.mark.parametrize(("at_once", "found"), [(1, "8/1"), (0, None)])
def test_empty_node_that_only_waits_for_its_turn_stays_in_its_batch(
    at_once: int, found: str | None
) -> None:
    """It left it as if a drain had failed, and its new node had come in vain."""
    own = make_scene_fleet(sector="alpha", empty_at_once_max=at_once)
    objects = [node("a", 9000, fleet=own, mark=1, began=1800), node("new-a", 1500, fleet=own)]
    budget = {"disruption_budgets": (DisruptionBudget(nodes=0),)}
    made = planned(*objects, fleets=(own,), new="new-a", settings=budget)
    assert marked(made) == {"a": found}


@pytest.mark.parametrize(
    ("waited", "found"), [(300, {}), (899, {}), (900, {"a": None}), (-60, {"a": "8/1"})]
)
def test_time_in_which_a_node_waited_for_its_turn_does_not_count(
    waited: float, found: dict[str, str | None]
) -> None:
    """A pod that kept it for a moment, after a day behind a budget, cost it its new node."""
    failed = {
        ROLLING_UPDATE: f"{NEW}/{rfc3339(ago(9000))}/1/{rfc3339(ago(waited))}",
        DRAIN_FAILED: f"{rfc3339(ago(30))}/1",
    }
    objects = [*used("a", A, annotations=failed), node("new-a", 8000, fleet=A)]
    assert marked(planned(*objects, new="new-a")) == found


def test_no_batch_begins_while_that_of_another_fleet_waits() -> None:
    """Every fleet asked for a new node at once, and one old node is emptied at a time."""
    objects = [*used("a", A, mark=1, began=60), *used("b", B), *used("c", C)]
    made = planned(*objects, target=2)
    assert marked(made) == {}
    assert kept(made)["b"] == kept(made)["c"] == "max-non-empty-at-once"
    many = RollingUpdate(batch_max=2)
    assert marked(planned(*objects, target=2, rules=many)) == {"b": "8/1"}


def test_batch_that_a_budget_of_its_fleet_keeps_holds_up_no_other_fleet() -> None:
    """A freeze of one team's fleet for the day stopped the updates of all others."""
    frozen = replace(A, disruption_budgets=(DisruptionBudget(nodes=0),))
    made = planned(*batch("a", frozen), *used("b", B), fleets=(frozen, B, C), new="new-a")
    assert kept(made)["a"] == "disruption-budget"
    assert marked(made)["b"] == "8/1"


@pytest.mark.parametrize("failed", [False, True])
def test_node_that_a_plan_has_no_time_for_leaves_its_batch_for_its_own_reasons_only(
    failed: bool,
) -> None:
    """In a busy cluster the nodes whose time has come are more than one plan looks at."""
    own = {DRAIN_FAILED: f"{rfc3339(ago(30))}/1"} if failed else {}
    objects = used("a", A, mark=1, began=3600, annotations=own)
    objects += [node("new-a", 3500, fleet=A)]
    expiring = replace(B, expire_after_seconds=4000)
    for number in range(45):
        objects += used(f"x{number:02}", expiring, 9500)
    new = " ".join(str(each.name) for each in objects[2:] if isinstance(each, Node))
    made = planned(*objects, fleets=(A, expiring), new=new, at=ago(-10))
    assert drained(made) == []
    assert "a" not in kept(made), "it was not looked at"
    assert marked(made) == {"a": None if failed else "8/1"}


def test_batch_begins_while_a_node_of_another_fleet_drains() -> None:
    """Its new node launches meanwhile: one after the other an update took twice as long."""
    made = planned(*used("a", A), *DRAINING, NEW_D, new="new-d")
    assert marked(made) == {"a": "8/1"}


def test_fleet_that_has_waited_longest_has_the_next_batch() -> None:
    """The first fleet in the order of names was updated to its last node before any other."""
    new = [node("n", 3000, fleet=A), node("o", 2000, fleet=B)]
    objects = [*used("a", A), *used("b", B), *new]
    assert marked(planned(*objects, new="n o")) == {"a": "8/1"}
    assert marked(planned(*objects, *used("c", C), new="n o")) == {"c": "8/1"}


def expired(name: str, fleet: FleetSettings) -> list[Node | Pod]:
    """An expired node of the fleet that could be emptied onto another one."""
    return [*used(name, fleet), node(f"room-{name}", 60, fleet=fleet)]


def test_batch_waits_for_no_node_of_a_fleet_with_a_smaller_limit() -> None:
    """It may wait for as long as anything is emptied, and no update went on for so long."""
    own = make_scene_fleet(sector="beta", expire_after_seconds=4000)
    more = make_scene_fleet(sector="gamma", non_empty_at_once_max=3)
    going = used("d", A, taints=(TAINT,), annotations={DRAIN_STARTED: rfc3339(ago(30))})
    objects = [*used("c", more), *expired("x", own), *going, node("new-d", fleet=A)]
    made = planned(*objects, fleets=(A, own, more), new="new-d room-x x")
    assert kept(made)["x"] == "max-non-empty-at-once"
    assert marked(made) == {"c": "8/1"}


@pytest.mark.parametrize(("at_once", "begins"), [(1, False), (0, True)])
def test_batch_begins_only_where_no_other_method_waits_for_its_turn(
    at_once: int, begins: bool
) -> None:
    """Thirty expired nodes went before it, and it gave up three new nodes meanwhile.

    Nodes of a fleet that empties none at all wait for no turn.
    """
    own = make_scene_fleet(sector="beta", expire_after_seconds=4000, non_empty_at_once_max=at_once)
    started = {DRAIN_STARTED: rfc3339(ago(30))}
    going = used("d", A, taints=(TAINT,), annotations=started)
    made = planned(
        *(*used("c", C), *expired("x", own), *going, node("new-d", fleet=A)),
        fleets=(A, own, C),
        new="new-d room-x x",
    )
    assert marked(made) == ({"c": "8/1"} if begins else {})


def test_node_whose_new_node_is_there_goes_before_an_expired_one() -> None:
    """Its new node would stand idle until the last expired node of the cluster has gone."""
    own = replace(B, expire_after_seconds=4000)
    objects = [*batch("a", A, new=60), *expired("x", own)]
    made = planned(*objects, fleets=(A, own), new="new-a x room-x")
    assert drained(made) == ["a"]


def test_node_of_a_batch_keeps_its_place_in_the_disruption_budgets() -> None:
    """Its place was another's as soon as its new node was Ready."""
    idle = node("idle", 9000, fleet=C, annotations={UNNEEDED_SINCE: rfc3339(ago(3600))})
    objects = [*batch("a", A), *DRAINING, NEW_D, idle]
    names = "new-a new-d idle"
    two = {"disruption_budgets": (DisruptionBudget(nodes=2),)}
    made = planned(*objects, new=names, settings=two)
    assert told(made, TaintNode) == []
    assert kept(made)["idle"] == "disruption-budget"
    three = {"disruption_budgets": (DisruptionBudget(nodes=3),)}
    assert told(planned(*objects, new=names, settings=three), TaintNode) == ["idle"]
    one = {"disruption_budgets": (DisruptionBudget(nodes=1),)}
    made = planned(*batch("a", A), idle, new=names, settings=one)
    assert told(made, TaintNode) == ["a"], "its place is its own"


def test_place_of_a_batch_node_is_counted_once() -> None:
    """With a place for two nodes the second one could not go beside it."""
    idle = node("idle", 9000, fleet=C, annotations={UNNEEDED_SINCE: rfc3339(ago(3600))})
    two = {"disruption_budgets": (DisruptionBudget(nodes=2),)}
    made = planned(*batch("a", A), idle, new="new-a idle", settings=two)
    assert sorted(told(made, TaintNode)) == ["a", "idle"]


@pytest.mark.parametrize("of_the_fleet", [False, True])
def test_node_of_a_batch_that_a_freeze_keeps_takes_no_place_of_others(of_the_fleet: bool) -> None:
    """No updates by day: one node that stayed in its batch kept all others of the cluster."""
    freeze = DisruptionBudget(nodes=0, reasons=frozenset({"drifted"}))
    frozen = replace(A, disruption_budgets=(freeze,)) if of_the_fleet else A
    own = replace(B, expire_after_seconds=4000)
    budgets = (DisruptionBudget(nodes=1), *(() if of_the_fleet else (freeze,)))
    made = planned(
        *(*batch("a", frozen), *expired("x", own)),
        fleets=(frozen, own),
        new="new-a x room-x",
        settings={"disruption_budgets": budgets},
    )
    assert drained(made) == ["x"]
    assert kept(made)["a"] == "disruption-budget"


def test_batch_node_that_waits_for_a_launch_has_one_place_in_the_budgets() -> None:
    """It counted as chosen and as disrupted, and kept a second node from going."""
    own = make_scene_fleet(sector="beta", expire_after_seconds=4000, non_empty_at_once_max=2)
    objects = [*batch("a", A), on("new-a", cpu="2500m", sector=A.sector), *expired("x", own)]
    made = planned(
        *objects,
        fleets=(A, own),
        new="new-a x room-x",
        target=3,
        settings={"disruption_budgets": (DisruptionBudget(nodes=2),)},
    )
    assert kept(made)["a"] == "replacement"
    assert drained(made) == ["x"]
