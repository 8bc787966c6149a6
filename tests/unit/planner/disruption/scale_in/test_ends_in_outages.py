"""Silent nodes that are ended although so many are silent that it looks like an outage."""

from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.actions import TerminateInstance
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from reconciler.planner.planner import plan
from tests.builders import (
    NOW,
    ago,
    make_cloud,
    make_fleet,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import FLEET, on, told

HOUR = 3600.0


def silent(name: str, seconds: float = HOUR, **changed: Any) -> Node:
    """A node that fell silent long after it joined."""
    changed = {"created_at": ago(90_000), "ready_changed_at": ago(seconds)} | changed
    return make_node(name, FLEET, ready=False, **changed)


def well(count: int) -> list[Node]:
    """Nodes that answer."""
    return [make_node(f"w{n}", FLEET) for n in range(count)]


def planned(*objects: Node | Pod, ending: tuple[str, ...] = (), relists: int = 2) -> Plan:
    """The plan; EC2 ends the instances of the nodes in `ending`."""
    nodes = [each for each in objects if isinstance(each, Node)]
    live = make_fleet(FLEET, len(nodes))
    instances = [
        make_instance(node, live, state="shutting-down" if node.name in ending else "running")
        for node in nodes
    ]
    cloud = make_cloud(live, instances=instances, instances_known=True)
    return plan(make_snapshot(*objects, cloud=cloud, relists=relists), make_settings(FLEET))


def why_held(made: Plan) -> dict[str, str]:
    """The nodes that an outage keeps, and why."""
    return {str(each.node): each.detail for each in made.held if each.code == "outage"}


def test_outage_is_reported_and_says_when_its_nodes_may_go() -> None:
    """Dead machines were billed without an end, and the first line said that all was well."""
    made = planned(*(silent(f"u{n}", HOUR - 60) for n in range(6)), *well(6))
    assert told(made, TerminateInstance) == []
    assert set(why_held(made)) == {f"u{n}" for n in range(6)}
    assert why_held(made)["u0"] == (
        "6 of 12 nodes are not Ready: the network or the API server may be the cause; no pod that"
        f" counts is left there: it may be ended from {rfc3339(NOW + timedelta(seconds=60))}"
    )


def test_nodes_that_are_silent_for_an_hour_and_hold_no_pod_go_three_at_a_time() -> None:
    """They were replaced one to one, so that their share never fell below the limit."""
    nodes = [*(silent(f"u{n}") for n in range(8)), *well(4)]
    given_up = [on(f"u{n}", name=f"p{n}", deleting=True) for n in range(8)]
    made = planned(*nodes, *given_up)
    assert told(made, TerminateInstance) == ["u0", "u1", "u2"]
    assert all(not a.decrement for a in made.actions if isinstance(a, TerminateInstance))
    assert why_held(made)["u3"].endswith("; 3 others are being ended")
    made = planned(*nodes, *given_up, ending=("u0", "u1"))
    assert told(made, TerminateInstance) == ["u2"]


def test_pod_that_kubernetes_has_not_given_up_keeps_its_silent_node() -> None:
    """Behind a cut network it serves on, however long the cut lasts."""
    nodes = [*(silent(f"u{n}", 9 * HOUR) for n in range(8)), *well(6)]
    pods = [on(f"u{n}", name=f"p{n}") for n in range(7)]
    made = planned(*nodes, *pods)
    assert told(made, TerminateInstance) == ["u7"]
    assert why_held(made)["u0"].endswith("; its pods may still run there")


def test_ends_never_make_nodes_go_whose_pods_may_still_run() -> None:
    """With the empty ones gone the others would be too few for an outage, and be ended as well."""
    nodes = [*(silent(f"u{n}", 9 * HOUR) for n in range(8)), *well(8)]
    made = planned(*nodes, *(on(f"u{n}", name=f"p{n}") for n in range(4)))
    assert told(made, TerminateInstance) == []
    assert why_held(made)["u7"].endswith("; 4 nodes with pods would be ended too, once it is gone")


@pytest.mark.parametrize("age", [60, 9000])
def test_nodes_that_come_count_among_those_that_answer(age: float) -> None:
    """Those that join, and those launched in place of ended ones, make the share smaller, too."""
    nodes = [*(silent(f"u{n}", 9 * HOUR) for n in range(15)), *well(5)]
    coming = [make_node(f"c{n}", FLEET, ready=age > 900, created_at=ago(age)) for n in range(3)]
    made = planned(*nodes, *coming, *(on(f"u{n}", name=f"p{n}") for n in range(5)))
    assert told(made, TerminateInstance) == []
    assert why_held(made)["u9"].endswith("; 5 nodes with pods would be ended too, once it is gone")


def test_region_of_which_no_node_answers_loses_none() -> None:
    """Nothing shows that the API server hears from anybody."""
    made = planned(*(silent(f"u{n}", 9 * HOUR) for n in range(5)))
    assert told(made, TerminateInstance) == []
    assert why_held(made)["u0"].endswith("; no other node of the region is Ready")


@pytest.mark.parametrize("name", ["u0", "u1"])
def test_protected_node_stays_and_keeps_no_other_from_its_turn(name: str) -> None:
    """Somebody looks at it; it would hold a place among those that are ended."""
    kept = FrozenMap({"fleet-reconciler.io/do-not-disrupt": "true"})
    nodes = [
        silent(f"u{n}", annotations=kept if f"u{n}" == name else FrozenMap({})) for n in range(6)
    ]
    made = planned(*nodes, *well(5))
    ended = told(made, TerminateInstance)
    assert name not in ended
    assert len(ended) == 3


def test_first_list_ends_nothing() -> None:
    """It may be a broken one: a second has to agree that so many are silent."""
    made = planned(*(silent(f"u{n}") for n in range(6)), *well(6), relists=1)
    assert told(made, TerminateInstance) == []
    assert {each.code for each in made.held} == {"safety-stop"}
