"""Drains of nodes whose instance cannot be ended now: shown, and not without an end."""

from typing import Any

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    AnnotateNode,
    DeleteNode,
    EvictPod,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetId
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    drained,
    full,
    kept,
    make_scene_fleet,
    on,
    told,
    unneeded,
)

GROUP = make_scene_fleet(provider="asg", auto_scaling_group="workers")
OTHER = make_fleet_settings("other", price="0.12", scale_in=make_scene_fleet().scale_in)
SUSPENDED = "its process Terminate is suspended"
WAITS = {"suspended": "fleet-busy", "detached": "unreadable", "missing": "fleet-missing"}


def made_while(state: str, node: Node, *objects: Any) -> Plan:
    """The plan while something keeps the node's instance from being ended; `b` is Ready too."""
    nodes = [node, make_node("b", GROUP)]
    rest = [o for o in objects if isinstance(o, Node)]
    halted = SUSPENDED if state == "suspended" else ""
    live = make_fleet(GROUP, 2, id=FleetId("workers"), removals_halted=halted)
    other = make_fleet(OTHER, len(rest) + 1)
    shown = [each for each in nodes if state != "detached" or each is not node]
    instances = [make_instance(each, live) for each in shown]
    rest.append(make_node("proof", OTHER))
    instances += [make_instance(each, other) for each in rest]
    fleets = (other,) if state == "missing" else (live, other)
    cloud = make_cloud(*fleets, instances=instances)
    objects = (*nodes, rest[-1], full("b", "1"), full("proof"), *objects)
    return plan(make_snapshot(*objects, cloud=cloud, relists=2), make_settings(GROUP, OTHER))


@pytest.mark.parametrize(("state", "code"), WAITS.items())
@pytest.mark.parametrize("pods", [[on("a")], []], ids=["pods", "empty"])
def test_drain_that_cannot_go_on_says_why(state: str, code: str, pods: list[Any]) -> None:
    """Nobody would learn why a closed node is not ended."""
    made = made_while(state, drained("a", GROUP), *pods)
    assert kept(made)["a"] == code
    assert told(made, EvictPod) + told(made, TerminateInstance) + told(made, UntaintNode) == []


@pytest.mark.parametrize("state", WAITS)
@pytest.mark.parametrize(("seconds", "pods"), [(121, [on("a")]), (241, [])])
def test_node_is_given_back_when_the_time_of_its_drain_is_over(
    state: str, seconds: float, pods: list[Any]
) -> None:
    """It would stay closed for as long as the group is suspended, for days perhaps."""
    made = made_while(state, drained("a", GROUP, seconds), *pods)
    assert told(made, UntaintNode) == ["a"]
    assert annotations_set(made) >= {
        ("a", "drain-started", None),
        ("a", "drain-failed", "2026-01-31T12:00:00Z/1"),
    }
    because = [a.because for a in made.actions if isinstance(a, UntaintNode)]
    assert state != "suspended" or SUSPENDED in because[0]


def test_time_of_an_empty_node_that_waits_begins_when_it_is_first_seen() -> None:
    """Its drain has no start that could be too long ago."""
    made = made_while("suspended", make_node("a", GROUP, draining=True))
    assert annotations_set(made) == {("a", "drain-started", "2026-01-31T12:00:00Z")}
    assert told(made, UntaintNode) == []


@pytest.mark.parametrize("text", ["2999-01-01T00:00:00Z", "yesterday"])
def test_time_of_an_empty_node_begins_now_where_its_start_tells_nothing(text: str) -> None:
    """Read as now in each plan, it would never be over."""
    made = made_while("suspended", drained("a", GROUP, annotations={DRAIN_STARTED: text}))
    assert annotations_set(made) == {("a", "drain-started", "2026-01-31T12:00:00Z")}


def test_drain_that_cannot_go_on_keeps_no_other_node_from_being_emptied() -> None:
    """One suspended group would stop the scale-in of the whole cluster."""
    nodes = [unneeded(name, OTHER, 7200) for name in ("m", "n")]
    pods = [on("a"), on("m", cpu="100m"), on("n", cpu="100m")]
    assert told(made_while("suspended", drained("a", GROUP), *nodes, *pods), TaintNode) == ["m"]
    assert told(made_while("", drained("a", GROUP), *nodes, *pods), TaintNode) == []


def test_node_that_is_deleted_as_its_instance_is_gone_gets_nothing_else() -> None:
    """A Node object that is about to go would be annotated, or opened to pods."""
    gone = drained("a", GROUP, 3600, ready=False, ready_changed_at=ago(9000))
    made = made_while("detached", gone)
    assert told(made, DeleteNode) == ["a"]
    assert "a" not in told(made, UntaintNode) + told(made, AnnotateNode)
