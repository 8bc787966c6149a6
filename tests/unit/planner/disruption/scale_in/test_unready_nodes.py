"""Nodes that are not Ready for long (docs/scale-in.md)."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.model.actions import DeleteNode, TerminateInstance
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    NOW,
    ago,
    make_cloud_of,
    make_fleet,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import FLEET, on, told


def unready(name: str = "a", seconds: float = 600, **changed: Any) -> Node:
    """A node that has not been Ready for some seconds."""
    changed = {"created_at": ago(9000), "ready_changed_at": ago(seconds)} | changed
    return make_node(name, FLEET, ready=False, **changed)


def planned(*objects: Node | Pod, gone: tuple[str, ...] = (), **changed: Any) -> Plan:
    """The plan; instances of the nodes in `gone` are not in EC2's answer."""
    nodes = [o for o in objects if isinstance(o, Node)]
    shown = [n for n in nodes if n.name not in gone]
    live = make_fleet(FLEET, len(nodes))
    cloud = make_cloud_of(shown, live, instances_known=changed.pop("known", True))
    return plan(make_snapshot(*objects, cloud=cloud, **changed), make_settings(FLEET))


@pytest.mark.parametrize(("seconds", "replaced"), [(599, []), (600, ["a"])])
def test_unready_node_whose_instance_runs_is_replaced(seconds: float, replaced: list[str]) -> None:
    """A hung machine would be paid for, and its share of the fleet be missing."""
    made = planned(unready(seconds=seconds), on("a"), make_node("b", FLEET))
    assert told(made, TerminateInstance) == replaced
    assert [a.decrement for a in made.actions if isinstance(a, TerminateInstance)] == [
        False for _ in replaced
    ]
    assert [f.target for f in made.fleets] == [2]


@pytest.mark.parametrize(
    ("seconds", "until"), [(60, NOW + timedelta(seconds=540)), (599, NOW + timedelta(seconds=1))]
)
def test_unready_node_says_when_it_may_be_replaced(seconds: float, until: datetime) -> None:
    """Nothing said that it is not waited for without an end."""
    (found,) = planned(unready(seconds=seconds)).kept
    assert (found.code, found.until) == ("not-ready", until)
    assert found.detail == "it is not Ready; after unready_time (10m) it may be replaced"


def test_node_that_the_plan_ends_is_not_said_to_stay() -> None:
    """What happens next listed it as looked at again when Ready."""
    made = planned(unready())
    assert told(made, TerminateInstance) == ["a"]
    assert made.kept == ()


def test_unready_node_whose_instance_is_gone_loses_its_object() -> None:
    """Its pods would hang in Terminating for ever."""
    made = planned(unready(), make_node("b", FLEET), gone=("a",))
    assert told(made, DeleteNode) == ["a"]
    assert told(made, TerminateInstance) == []


def test_node_that_answers_stays_whatever_ec2_says() -> None:
    """A stale describe would delete a node that works."""
    made = planned(make_node("a", FLEET), make_node("b", FLEET), gone=("a",))
    assert told(made, DeleteNode) == []


def test_node_is_not_gone_where_instances_are_not_known() -> None:
    """A denied describe would delete every unready node."""
    assert (
        told(planned(unready(), make_node("b", FLEET), gone=("a",), known=False), DeleteNode) == []
    )
    assert told(planned(unready(), gone=("a",)), DeleteNode) == []


def test_node_that_is_still_joining_is_waited_for() -> None:
    """A node would be replaced while it boots."""
    young = unready(created_at=ago(899), ready_changed_at=ago(890))
    assert told(planned(young), TerminateInstance) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"owner": "Job"},
        {"annotations": FrozenMap({"fleet-reconciler.io/do-not-disrupt": "true"})},
        {"unreadable": True},
    ],
)
def test_work_that_may_still_run_is_waited_for(changed: dict[str, Any]) -> None:
    """A kubelet that only lost its connection would lose a running Job."""
    made = planned(unready(), on("a", **changed))
    assert told(made, TerminateInstance) == []
    assert "may-still-run" in {k.code for k in made.kept}


def test_pods_that_kubernetes_gave_up_hold_nothing() -> None:
    """A dead node with a Job on it would never be replaced."""
    made = planned(unready(), on("a", owner="Job", deleting=True))
    assert told(made, TerminateInstance) == ["a"]


@pytest.mark.parametrize(
    "changed",
    [
        {"annotations": FrozenMap({"fleet-reconciler.io/do-not-disrupt": "true"})},
        {"unreadable": True},
        {"draining": True},
        {"instance_id": None},
    ],
)
def test_node_with_reasons_of_its_own_is_left_alone(changed: dict[str, Any]) -> None:
    """What an operator looks at, or nobody can read, would vanish."""
    made = planned(unready(**changed), on("a"))
    assert told(made, TerminateInstance) + told(made, DeleteNode) == []


def test_many_unready_nodes_at_once_are_more_likely_our_mistake() -> None:
    """A cut network would have the whole fleet replaced."""
    made = planned(*(unready(n) for n in "abcd"), *(make_node(n, FLEET) for n in "xyz"))
    assert told(made, TerminateInstance) == []
    assert [h.node for h in made.held] == list("abcd")


@pytest.mark.parametrize(("silent", "well", "ended"), [(3, 0, 3), (4, 4, 0), (4, 5, 4)])
def test_outage_of_the_network_ends_no_instance(silent: int, well: int, ended: int) -> None:
    """Two lists that agree are no proof: the machines run on, with all that is on them."""
    nodes = [unready(f"u{n}") for n in range(silent)]
    made = planned(*nodes, *(make_node(f"w{n}", FLEET) for n in range(well)), relists=2)
    assert len(told(made, TerminateInstance)) == ended
    assert all(k.code == "not-ready" for k in made.kept if k.node.startswith("u"))


def test_node_is_not_ended_while_no_fleet_would_replace_it() -> None:
    """EC2 left the fleet out of an answer, or it is to be made again."""
    node = unready()
    gone = make_fleet(FLEET, 1, state="deleted-running")
    made = plan(make_snapshot(node, cloud=make_cloud_of([node], gone)), make_settings(FLEET))
    assert told(made, TerminateInstance) == []
