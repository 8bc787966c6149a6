"""Pods that stay in deletion long after their grace period (a finalizer, a lost volume)."""

import pytest

from reconciler.model.actions import EvictPod, TaintNode, TerminateInstance, UntaintNode
from tests.builders import ago, make_node
from tests.unit.planner.disruption.scale_in.scene import (
    drained,
    full,
    kept,
    make_scene_fleet,
    moves,
    on,
    planned,
    told,
    unneeded,
)

FLEET = make_scene_fleet()


@pytest.mark.parametrize(("seconds", "goes"), [(-30, []), (59, []), (61, ["a"])])
def test_node_on_which_only_hanging_pods_are_is_empty(seconds: float, goes: list[str]) -> None:
    """One pod with a finalizer that nobody takes off would keep its node for ever."""
    pod = on("a", deleting=True, deletion_at=ago(seconds))
    made = planned(FLEET, unneeded("a", FLEET), make_node("b", FLEET), pod, full("b"))
    assert told(made, TaintNode) == goes
    assert kept(made).get("a") == (None if goes else "deleting")


def test_pod_on_a_node_that_does_not_answer_may_still_run() -> None:
    """Kubernetes has given it up, but nobody has seen its containers end."""
    pod = on("a", deleting=True, deletion_at=ago(600))
    node = drained("a", FLEET, ready=False)
    made = planned(FLEET, node, make_node("b", FLEET), pod, full("b"))
    assert told(made, TerminateInstance) == []


def test_hanging_pod_is_neither_evicted_nor_moved() -> None:
    """It has been deleted already; its place elsewhere would stay empty."""
    pods = [on("a", "hangs", deleting=True, deletion_at=ago(600)), on("a", "runs")]
    made = planned(FLEET, unneeded("a", FLEET), make_node("b", FLEET), *pods, full("b"))
    assert told(made, EvictPod) == ["runs"]
    assert moves(made) == {"runs": "b"}


def test_drained_node_is_ended_with_the_pods_that_hang_there() -> None:
    """The check right before the end would find them and refuse."""
    pod = on("a", "hangs", deleting=True, deletion_at=ago(600))
    nodes = [drained("a", FLEET, 120), make_node("b", FLEET)]
    made = planned(FLEET, *nodes, pod, full("b"))
    ends = [action for action in made.actions if isinstance(action, TerminateInstance)]
    assert [(end.node, end.stuck_terminating) for end in ends] == [("a", (pod.key,))]


def test_pod_that_was_just_evicted_does_not_hang_whatever_the_other_clock_says() -> None:
    """The API server's clock may be minutes behind ours: its grace period would be cut short."""
    pod = on("a", deleting=True, deletion_at=ago(600))
    made = planned(FLEET, drained("a", FLEET, 30), make_node("b", FLEET), pod, full("b"))
    assert told(made, TerminateInstance) == []


@pytest.mark.parametrize(("seconds", "goes"), [(179, []), (181, ["a"])])
def test_hanging_pod_that_asks_for_a_long_time_keeps_its_node_no_longer(
    seconds: float, goes: list[str]
) -> None:
    """An eviction gives it no more than the limit; a pod may ask for years."""
    pod = on("a", deleting=True, deletion_at=ago(600), termination_grace_seconds=2**31 - 1)
    made = planned(FLEET, drained("a", FLEET, seconds), make_node("b", FLEET), pod, full("b"))
    assert told(made, TerminateInstance) == goes
    assert kept(made).get("a") == (None if goes else "deleting")


def test_what_a_hanging_pod_asks_for_is_not_free() -> None:
    """kube-scheduler counts it until its object is gone."""
    hangs = on("b", "hangs", "3", deleting=True, deletion_at=ago(600))
    made = planned(FLEET, unneeded("a", FLEET), make_node("b", FLEET), hangs, on("a", cpu="2"))
    assert told(made, TaintNode) == []


@pytest.mark.parametrize(
    ("left", "goes"), [pytest.param(120, ["web"], id="in time"), pytest.param(3600, [], id="late")]
)
def test_no_drain_begins_beside_a_pod_that_ends_after_its_limit(
    left: float, goes: list[str]
) -> None:
    """It was given up after four minutes and begun again, and the other pods moved each time."""
    slow = on("a", "slow", deleting=True, deletion_at=ago(-left))
    nodes = [unneeded("a", FLEET), make_node("b", FLEET)]
    made = planned(FLEET, *nodes, slow, on("a", "web"), full("b", "1"))
    assert told(made, EvictPod) == goes
    assert kept(made).get("a") == (None if goes else "long-grace")


def test_drain_beside_a_pod_that_was_given_an_hour_to_end_is_given_back() -> None:
    """Nothing is gained by waiting until the limit, and the node takes no pods meanwhile."""
    slow = on("a", "slow", deleting=True, deletion_at=ago(-3600))
    made = planned(FLEET, drained("a", FLEET, 30), make_node("b", FLEET), slow, full("b", "1"))
    assert told(made, UntaintNode) == ["a"]
