"""Drains under way: gone on with, given up, ended (docs/scale-in.md)."""

from typing import Any

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    INTERRUPTION,
    UNNEEDED_SINCE,
    EvictPod,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import PodDisruptionBudget, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.text import rfc3339
from tests.builders import (
    AWAY,
    HOME,
    HOSTNAME,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    selecting,
    spread,
)
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    drained,
    full,
    kept,
    make_scene_fleet,
    moves,
    noted,
    on,
    planned,
    told,
    unneeded,
)


def test_pods_still_there_are_evicted_again_those_on_their_way_are_not() -> None:
    """A lost eviction would stall the drain; a second one would cut a grace period short."""
    fleet = make_scene_fleet()
    going = on("a", "going", deleting=True)
    made = planned(fleet, drained("a", fleet), make_node("b", fleet), going, on("a"), full("b"))
    assert told(made, EvictPod) == ["on-a"]
    assert moves(made) == {"on-a": "b"}
    assert told(made, UntaintNode) + told(made, TaintNode) == []


def test_eviction_has_the_smaller_of_both_grace_periods() -> None:
    """A pod would be given longer, or shorter, than it and the config agreed."""
    fleet = make_scene_fleet(graceful_termination_max_seconds=60)
    made = planned(
        fleet,
        drained("a", fleet),
        make_node("b", fleet),
        on("a", "quick", "100m", termination_grace_seconds=5),
        on("a", "usual", "100m", termination_grace_seconds=60),
        full("b"),
    )
    graces = {a.pod.name: a.grace_seconds for a in made.actions if isinstance(a, EvictPod)}
    assert graces == {"quick": 5, "usual": 60}


def test_drained_node_is_ended_with_its_target() -> None:
    """EC2 would launch another in its place."""
    fleet = make_scene_fleet()
    made = planned(fleet, drained("a", fleet), make_node("b", fleet), full("b"))
    (action,) = made.actions
    assert isinstance(action, TerminateInstance)
    assert (action.node, action.decrement) == ("a", True)
    assert [f.target for f in made.fleets] == [1]


def test_drain_past_its_time_is_given_up_and_rests() -> None:
    """Nodes would stay tainted for ever, or be tried again at once, for ever."""
    fleet = make_scene_fleet()
    made = planned(fleet, drained("a", fleet, 121), make_node("b", fleet), on("a"), full("b"))
    assert told(made, UntaintNode) == ["a"]
    assert told(made, EvictPod) == []
    assert annotations_set(made) == {
        ("a", "drain-failed", "2026-01-31T12:00:00Z/1"),
        ("a", "drain-started", None),
    }


def test_pods_on_their_way_get_their_grace_period_after_the_timeout() -> None:
    """A node would be given back, and its last pod end a moment later."""
    fleet = make_scene_fleet()
    nodes, going = make_node("b", fleet), on("a", deleting=True)
    assert told(planned(fleet, drained("a", fleet, 239), nodes, going), UntaintNode) == []
    assert told(planned(fleet, drained("a", fleet, 241), nodes, going), UntaintNode) == ["a"]


def test_failures_are_counted_and_the_rest_doubles() -> None:
    """A node that cannot be drained would disturb its pods every few minutes."""
    fleet = make_scene_fleet()
    failed = {"fleet-reconciler.io/drain-failed": "2026-01-31T11:54:00Z/2"}
    again = drained("a", fleet, 121, annotations=failed)
    made = planned(fleet, again, make_node("b", fleet), on("a"), full("b"))
    assert ("a", "drain-failed", "2026-01-31T12:00:00Z/3") in annotations_set(made)


@pytest.mark.parametrize(
    ("noted", "leaves"),
    [
        ("2026-01-31T11:56:00Z/1", False),
        ("2026-01-31T11:54:59Z/1", True),
        ("2026-01-31T11:51:00Z/2", False),
        ("2026-01-31T11:49:00Z/2", True),
        ("2026-01-31T11:31:00Z/9", False),
        ("2026-01-31T13:00:00Z/1", False),
        ("nonsense", True),
        ("2026-01-31T11:56:00Z/minus", False),
    ],
)
def test_node_rests_after_a_failed_drain(noted: str, leaves: bool) -> None:
    """A drain that fails again and again would keep evicting the same pods."""
    fleet = make_scene_fleet()
    node = unneeded("a", fleet, annotations={"fleet-reconciler.io/drain-failed": noted})
    made = planned(fleet, node, make_node("b", fleet), on("a"), full("b"))
    assert told(made, TaintNode) == (["a"] if leaves else [])
    assert (kept(made).get("a") == "drain-cool-off") is not leaves


def test_others_go_first_while_a_node_rests() -> None:
    """One stubborn node would hold up all the others."""
    fleet = make_scene_fleet()
    rests = {"fleet-reconciler.io/drain-failed": "2026-01-31T11:59:00Z/1"}
    made = planned(
        fleet,
        unneeded("a", fleet, 9000, annotations=rests),
        unneeded("b", fleet),
        make_node("c", fleet),
        on("a"),
        on("b"),
        full("c"),
    )
    assert told(made, TaintNode) == ["b"]


@pytest.mark.parametrize(
    "changed",
    [
        {"owner": "Job"},
        {"owner": None},
        {"annotations": FrozenMap({"fleet-reconciler.io/do-not-disrupt": "true"})},
    ],
)
def test_pod_that_may_not_move_ends_the_drain(changed: dict[str, Any]) -> None:
    """A Job that was bound in the last moment would be killed."""
    fleet = make_scene_fleet()
    made = planned(
        fleet, drained("a", fleet), make_node("b", fleet), on("a", "bad", **changed), on("a")
    )
    assert told(made, UntaintNode) == ["a"]
    assert told(made, EvictPod) == []
    assert ("a", "drain-started", None) in annotations_set(made)


def test_lost_destination_ends_the_drain() -> None:
    """Pods would be evicted with nowhere to go, and a node be bought for them."""
    fleet = make_scene_fleet()
    made = planned(fleet, drained("a", fleet), make_node("b", fleet), on("a"), full("b", "4"))
    assert told(made, UntaintNode) == ["a"]
    assert told(made, EvictPod) == []


def test_budget_used_up_on_the_way_is_waited_for() -> None:
    """Each eviction uses the budget up for a while: no drain of two replicas would ever end."""
    fleet = make_scene_fleet()
    budget = PodDisruptionBudget(
        namespace="ns", name="w", selector=selecting(app="w"), disruptions_allowed=1
    )
    pods = [on("a", name, "100m", labels={"app": "w"}) for name in ("w1", "w2")]
    made = planned(
        fleet, drained("a", fleet), make_node("b", fleet), *pods, full("b"), budgets=(budget,)
    )
    assert told(made, EvictPod) == ["w1"]
    assert told(made, UntaintNode) == []


def test_unreadable_start_of_a_drain_is_written_anew() -> None:
    """A drain without a start would never time out."""
    fleet = make_scene_fleet()
    broken = make_node(
        "a", fleet, draining=True, annotations=FrozenMap({"fleet-reconciler.io/drain-started": "?"})
    )
    made = planned(fleet, broken, make_node("b", fleet), on("a"), full("b"))
    assert annotations_set(made) == {("a", "drain-started", "2026-01-31T12:00:00Z")}
    assert told(made, EvictPod) == ["on-a"]


def test_node_tainted_but_never_begun_is_given_back() -> None:
    """A crash between taint and annotation would leave a drain without an end."""
    fleet = make_scene_fleet()
    made = planned(fleet, make_node("a", fleet, draining=True), make_node("b", fleet), on("a"))
    assert told(made, UntaintNode) == ["a"]


def test_drain_below_a_raised_minimum_is_called_off() -> None:
    """The fleet would be below its minimum until a new node has joined."""
    fleet = make_scene_fleet(min_capacity=2)
    made = planned(fleet, drained("a", fleet), make_node("b", fleet), on("a"), full("b"))
    assert told(made, UntaintNode) == ["a"]
    assert told(made, EvictPod) == []


def test_two_drains_under_way_are_held_against_the_minimum_together() -> None:
    """Each alone would leave enough, both would not."""
    fleet = make_scene_fleet(min_capacity=2)
    nodes = [drained("a", fleet), drained("b", fleet), make_node("c", fleet)]
    made = planned(fleet, *nodes, on("a", cpu="100m"), on("b", cpu="100m"), full("c"))
    assert told(made, EvictPod) == ["on-a"]
    assert told(made, UntaintNode) == ["b"]


def test_interrupted_node_is_left_to_its_own_policy() -> None:
    """Scale-in would give a node back that EC2 takes in two minutes."""
    fleet = make_scene_fleet()
    taint = Taint(key="fleet-reconciler.io/draining", value="interruption", effect="NoSchedule")
    notice = noted({}, {"annotations": {INTERRUPTION: f"terminate/{rfc3339(ago(-20))}"}})
    node = make_node("a", fleet, taints=(taint,), annotations=notice)
    made = planned(fleet, node, make_node("b", fleet))
    assert told(made, UntaintNode) + told(made, TerminateInstance) == []


def test_pod_that_tolerates_the_taint_and_is_promised_the_node_keeps_it() -> None:
    """The node would be ended under a pod that is just being bound to it."""
    from reconciler.model.cluster import Toleration  # noqa: PLC0415

    fleet = make_scene_fleet()
    pending = make_pod(tolerations=(Toleration(operator="Exists"),))
    made = planned(fleet, drained("a", fleet), pending)
    assert told(made, UntaintNode) == ["a"]
    assert told(made, TerminateInstance) == []


def test_balloons_left_on_a_drained_node_end_with_it() -> None:
    """Headroom would keep nodes that nothing needs."""
    fleet = make_scene_fleet()
    made = planned(fleet, drained("a", fleet), make_node("b", fleet), on("a", priority=-1))
    assert told(made, TerminateInstance) == ["a"]


def test_low_priority_job_at_work_is_not_killed_as_a_balloon() -> None:
    """Batch work with a negative priority would be lost as if it were headroom."""
    fleet = make_scene_fleet()
    job = on("a", owner="Job", priority=-1)
    made = planned(fleet, drained("a", fleet), make_node("b", fleet), job)
    assert told(made, TerminateInstance) == []
    empty = planned(fleet, unneeded("a", fleet), make_node("b", fleet), job)
    assert told(empty, TaintNode) == []
    assert kept(empty)["a"] == "protected"


def test_start_of_a_drain_that_is_over_is_taken_off_the_node() -> None:
    """The next drain of the node would be given up at once, as one that has taken too long."""
    fleet = make_scene_fleet()
    node = make_node("a", fleet, annotations=noted({DRAIN_STARTED: 3600}, {}))
    made = planned(fleet, node, full("a"), make_node("b", fleet), full("b"))
    assert annotations_set(made) == {
        ("a", "drain-started", None),
        ("a", "drain-failed", "2026-01-31T12:00:00Z/1"),
    }


def test_node_rests_in_the_very_plan_that_notes_the_end_of_its_drain() -> None:
    """Killed between taint and note, the next process would evict the same pods at once."""
    fleet = make_scene_fleet()
    node = make_node("a", fleet, annotations=noted({DRAIN_STARTED: 30, UNNEEDED_SINCE: 3600}, {}))
    made = planned(fleet, node, on("a"), make_node("b", fleet), full("b"))
    assert told(made, TaintNode) + told(made, EvictPod) == []
    assert kept(made)["a"] == "drain-cool-off"
    assert ("a", "drain-failed", "2026-01-31T12:00:00Z/1") in annotations_set(made)


def test_node_that_is_taken_back_with_pods_on_it_rests() -> None:
    """Its pods come back, and would be moved again two minutes later, for ever."""
    fleet = make_scene_fleet()
    waiting = make_pod("waits", cpu="2500m", memory="64Mi", sector="primary")
    made = planned(fleet, drained("a", fleet), on("a"), make_node("b", fleet), full("b"), waiting)
    assert told(made, UntaintNode) == ["a"]
    assert ("a", "drain-failed", "2026-01-31T12:00:00Z/1") in annotations_set(made)


def test_failed_drain_is_noted_before_the_taint_goes() -> None:
    """Killed in between, the next process would begin the same drain without any rest."""
    fleet = make_scene_fleet()
    node = drained("a", fleet, 3600)
    made = planned(fleet, node, on("a"), make_node("b", fleet), full("b"))
    kinds = [type(a).__name__ for a in made.actions if getattr(a, "node", None) == "a"]
    assert kinds == ["AnnotateNode", "AnnotateNode", "UntaintNode"]
    assert getattr(made.actions[0], "key", "").endswith("drain-failed")


def test_failure_that_was_noted_before_a_crash_is_not_counted_twice() -> None:
    """Its rest would be twice as long as that of a drain that failed once."""
    fleet = make_scene_fleet()
    marks = {"fleet-reconciler.io/drain-failed": "2026-01-31T11:59:00Z/1"}
    node = drained("a", fleet, 3600, annotations=marks)
    made = planned(fleet, node, on("a"), make_node("b", fleet), full("b"))
    assert annotations_set(made) == {("a", "drain-started", None)}
    assert told(made, UntaintNode) == ["a"]


@pytest.mark.parametrize("owner", ["StatefulSet", "ReplicaSet"])
def test_place_of_a_stateful_pod_is_kept_until_it_comes_again(owner: str) -> None:
    """Its controller makes it again when it is gone; an empty node would go, another be bought."""
    fleet = make_scene_fleet()
    going = on("a", "going", "2", deleting=True, owner=owner)
    made = planned(fleet, drained("a", fleet), going, unneeded("b", fleet), full("c"))
    assert told(made, TaintNode) == ([] if owner == "StatefulSet" else ["b"])
    assert told(made, EvictPod) + told(made, UntaintNode) == []


def test_place_of_a_stateful_pod_is_kept_where_its_rules_let_it_come() -> None:
    """Spread does not count the pod that stops, and counts the one that comes again.

    A spot rescheduler's drains sent such a pod to and fro: the node where it could come was taken
    for unneeded, and marked, while it stopped.
    """
    fleet = make_scene_fleet()
    rules: dict[str, Any] = {
        "owner": "StatefulSet",
        "labels": {"app": "db"},
        "topology_spread": (spread(HOSTNAME, app="db"),),
    }
    going = on("a", "db-1", deleting=True, **rules)
    nodes = [drained("a", fleet), unneeded("b", fleet), make_node("c", fleet)]
    made = planned(fleet, *nodes, going, on("b"), full("c", "2"), on("c", "db-0", **rules))
    assert told(made, TaintNode) + told(made, UntaintNode) == []
    assert annotations_set(made) == {("b", "unneeded-since", None)}


def test_drain_is_given_up_when_a_stateful_pod_could_not_come_again() -> None:
    """Its node would end while it stops, and a node be bought for it a second later."""
    fleet = make_scene_fleet()
    going = on("a", "going", "2", deleting=True, owner="StatefulSet")
    made = planned(fleet, drained("a", fleet), going, make_node("b", fleet), full("b"))
    assert told(made, UntaintNode) == ["a"]


def test_room_that_a_drain_under_way_counts_on_is_not_given_to_pods_that_come_sooner() -> None:
    """A StatefulSet's pod comes when the old one has gone: by then the node would be taken."""
    fleet = make_scene_fleet(non_empty_at_once_max=2)
    going = on("a", "going", "3500m", deleting=True, owner="StatefulSet")
    nodes = [make_node("b", fleet), make_node("c", fleet), unneeded("d", fleet)]
    pods = [on("b", "little", "100m"), on("c", "half", "2"), on("d", cpu="1500m")]
    made = planned(fleet, drained("a", fleet), going, *nodes, *pods)
    assert told(made, TaintNode) == []
    assert kept(made)["d"] == "no-destination"
    assert told(planned(fleet, *nodes, *pods), TaintNode) == ["d"]


def test_nobody_is_evicted_while_ec2_does_not_answer_for_the_fleet() -> None:
    """Pods would be moved for a node that nothing can end."""
    away, home = make_fleet_settings(regions=(AWAY,)), make_fleet_settings("home")
    nodes = [drained("a", away, region=AWAY), make_node("b", home)]
    lives = make_fleet(home, 1)
    cloud = make_cloud(
        lives,
        instances=[make_instance(nodes[1], lives)],
        regions=frozenset({HOME}),
        silent=frozenset({AWAY}),
    )
    settings = make_settings(away, home, regions=(HOME, AWAY))
    made = planned(settings, *nodes, on("a"), cloud=cloud)
    assert told(made, EvictPod) + told(made, UntaintNode) == []


def test_protection_of_the_instance_that_is_set_during_a_drain_ends_it() -> None:
    """Whoever protects an instance from scale-in would see it ended a minute later."""
    fleet = make_scene_fleet()
    nodes = [drained("a", fleet), make_node("b", fleet)]
    live = make_fleet(fleet, 2)
    instances = [make_instance(n, live, protected=n.name == "a") for n in nodes]
    cloud = make_cloud(live, instances=instances, instances_known=True)
    for pods in ((on("a"),), ()):
        made = planned(fleet, *nodes, *pods, full("b"), cloud=cloud)
        assert told(made, UntaintNode) == ["a"]
        assert told(made, TerminateInstance) + told(made, EvictPod) == []
