"""New nodes that somebody has put into standby while their fleet is updated."""

import pytest

from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    ago,
    kept_proof,
    make_cloud,
    make_fleet,
    make_instance,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import full, kept, make_scene_fleet, on
from tests.unit.planner.disruption.updated_fleet import NEW, OLD, RULES, node, state
from tests.unit.planner.placed import drained

GROUP = make_scene_fleet(provider="asg")


def with_new_node(new: Node, *pods: Pod, set_aside: bool, mark: int = 0) -> Plan:
    """The plan of a group with two old nodes and a new one, which may be in standby.

    Args:
        new: The new node.
        pods: Pods beside those on the old nodes.
        set_aside: Whether the new node is in standby.
        mark: The number of the first old node in a batch; 0 if it is in none.
    """
    live = make_fleet(
        GROUP,
        2 if set_aside else 3,
        launch_template_id="lt-1",
        launch_template_version=NEW,
        min_size=0,
        max_size=20,
    )
    old = [node("a", 9000, fleet=GROUP, mark=mark), node("b", 9000, fleet=GROUP)]
    found = [make_instance(each, live, launch_template_version=OLD) for each in old]
    found.append(make_instance(new, live, launch_template_version=NEW, set_aside=set_aside))
    cloud = make_cloud(live, instances=found, instances_known=True)
    snapshot = make_snapshot(*old, new, full("b"), *pods, cloud=cloud, **kept_proof(live))
    return plan(snapshot, make_settings(GROUP, rolling_update=RULES))


@pytest.mark.parametrize(("set_aside", "expected"), [(True, "canary"), (False, "halted")])
def test_new_node_in_standby_that_is_not_ready_halts_nothing(
    set_aside: bool, expected: str
) -> None:
    """Whoever stopped its kubelet to look at it had to resume the update."""
    new = node("c", 7200, fleet=GROUP, ready=False, ready_changed_at=ago(6000))
    assert state(with_new_node(new, full("a"), set_aside=set_aside)) == expected


@pytest.mark.parametrize("set_aside", [True, False])
def test_new_node_in_standby_is_none_for_which_a_batch_waits(set_aside: bool) -> None:
    """Its group does not count it: the service had one node less than before."""
    new = node("c", 300, fleet=GROUP)
    made = with_new_node(new, on("a"), set_aside=set_aside, mark=1)
    assert drained(made) == ([] if set_aside else ["a"])
    assert (kept(made).get("a") == "replacement") is set_aside


def test_pods_that_crash_on_a_new_node_in_standby_halt_the_update() -> None:
    """They came before it was set aside, and that may be why it was."""
    pods: list[Pod] = [full("a"), on("c", "app", restarts=9)]
    new = node("c", 7200, fleet=GROUP)
    assert state(with_new_node(new, *pods, set_aside=True)) == "halted"
