"""Nodes with pods: when they are emptied and where their pods go (docs/scale-in.md)."""

from datetime import time, timedelta
from typing import Any

import pytest

from reconciler.model.actions import (
    DRAINING_TAINT,
    UNNEEDED_TAINT,
    AnnotateNode,
    EvictPod,
    TaintNode,
    TerminateInstance,
)
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.planner.disruption_settings import GracePeriod, ScaleInSettings
from tests.builders import (
    HOSTNAME,
    NOW,
    ago,
    amounts_of,
    make_daemon_set,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    near,
)
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
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


def test_under_used_node_is_drained_with_every_pod_promised_a_place() -> None:
    """Half-empty nodes would run for ever."""
    fleet = make_scene_fleet()
    made = planned(fleet, unneeded("a", fleet), make_node("b", fleet), on("a"), full("b"))
    kinds = [type(a) for a in made.actions]
    assert kinds == [TaintNode, AnnotateNode, EvictPod]
    taint = made.actions[0]
    assert isinstance(taint, TaintNode)
    assert (taint.taint.key, taint.taint.value) == (DRAINING_TAINT, "scale-in")
    assert annotations_set(made) == {("a", "drain-started", "2026-01-31T12:00:00Z")}
    assert moves(made) == {"on-a": "b"}
    (evicted,) = [a for a in made.actions if isinstance(a, EvictPod)]
    assert (evicted.pod.name, evicted.node, evicted.grace_seconds) == ("on-a", "a", 30)
    assert [f.target for f in made.fleets] == [2]


def test_pods_that_few_nodes_take_get_their_places_first() -> None:
    """The larger ones fill the one node that the small one may go to, and the node stays."""
    fleet = make_scene_fleet()
    nodes = [unneeded("a", fleet), make_node("b", fleet, labels={"disk": "fast"})]
    pinned = on("a", "pinned", cpu="400m", node_selector=FrozenMap({"disk": "fast"}))
    others = [on("a", "one", cpu="700m"), on("a", "two", cpu="700m")]
    filled = [full("b", "2600m"), full("c", "2500m")]
    made = planned(fleet, *nodes, make_node("c", fleet), pinned, *others, *filled)
    assert told(made, TaintNode) == ["a"]
    assert moves(made) == {"pinned": "b", "one": "b", "two": "c"}


def test_node_first_found_unneeded_starts_its_timer() -> None:
    """A node would be emptied the moment its load dips."""
    fleet = make_scene_fleet()
    made = planned(fleet, make_node("a", fleet), make_node("b", fleet), on("a"), full("b"))
    assert annotations_set(made) == {("a", "unneeded-since", "2026-01-31T12:00:00Z")}
    assert told(made, TaintNode) == []
    assert kept(made)["a"] == "unneeded-time"


@pytest.mark.parametrize(("seconds", "leaves"), [(599, []), (600, ["a"]), (-60, [])])
def test_node_is_drained_after_unneeded_time(seconds: float, leaves: list[str]) -> None:
    """Too early moves pods for nothing, too late costs money, a clock jump moves nothing."""
    fleet = make_scene_fleet()
    node = unneeded("a", fleet, seconds)
    made = planned(fleet, node, make_node("b", fleet), on("a"), full("b"))
    assert told(made, TaintNode) == leaves


@pytest.mark.parametrize(
    ("cpu", "memory", "leaves"),
    [("1999m", "1Gi", True), ("2", "1Gi", False), ("100m", "8Gi", False), ("100m", "8191Mi", True)],
)
def test_use_must_be_below_the_threshold_in_cpu_and_memory(
    cpu: str, memory: str, leaves: bool
) -> None:
    """A node full of memory would count as empty, or one exactly at the threshold leave."""
    fleet = make_scene_fleet()
    node, other = unneeded("a", fleet), make_node("b", make_scene_fleet(cpu=64, memory="256Gi"))
    pod = on("a", cpu=cpu, requests={"memory": memory})
    made = planned(fleet, node, other, pod, on("b", "x", cpu="40"))
    assert told(made, TaintNode) == (["a"] if leaves else [])


def test_use_of_a_device_keeps_its_node() -> None:
    """A GPU at work on a node with idle CPUs would be taken away."""
    fleet = make_scene_fleet()
    gpu = amounts_of({"cpu": "4", "memory": "16Gi", "pods": 58, "nvidia.com/gpu": 1})
    nodes = [unneeded("a", fleet, allocatable=gpu), make_node("b", fleet, allocatable=gpu)]
    work = on("a", requests={"nvidia.com/gpu": 1})
    assert told(planned(fleet, *nodes, work, full("b")), TaintNode) == []
    assert told(planned(fleet, *nodes, on("a"), full("b")), TaintNode) == ["a"]


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(("cpu", "leaves"), [("900m", True), ("1", False)])
def test_daemons_count_neither_as_use_nor_as_room(cpu: str, leaves: bool, listed: bool) -> None:
    """Nodes with many daemons would never be under-used, or always, or be no destination."""
    fleet = make_scene_fleet()
    daemons = [on(n, f"d-{n}", "2", namespace="kube-system", owner="DaemonSet") for n in "ab"]
    made = planned(
        fleet,
        unneeded("a", fleet),
        make_node("b", fleet),
        on("a", cpu=cpu),
        full("b", "1"),
        *daemons,
        daemon_sets=(make_daemon_set("d", cpu="2", memory="64Mi"),) if listed else (),
    )
    assert told(made, TaintNode) == (["a"] if leaves else [])
    assert told(made, EvictPod) == (["on-a"] if leaves else [])


def test_node_whose_pods_fit_nowhere_loses_its_timer() -> None:
    """Its pods would be pending, and a new node be bought for them."""
    fleet = make_scene_fleet()
    made = planned(
        fleet, unneeded("a", fleet), make_node("b", fleet), on("a", cpu="1600m"), full("b")
    )
    assert annotations_set(made) == {("a", "unneeded-since", None)}
    assert kept(made)["a"] == "no-destination"


@pytest.mark.parametrize(
    "changed",
    [
        {"ready": False, "created_at": ago(60)},
        {"unschedulable": True},
        {"draining": True},
        {"deleting": True},
    ],
)
def test_node_that_takes_no_pods_or_leaves_is_no_destination(changed: dict[str, Any]) -> None:
    """Pods would be promised a place that they cannot have."""
    fleet = make_scene_fleet()
    other = make_node("b", fleet, **changed)
    made = planned(fleet, unneeded("a", fleet), other, on("a"), full("b"))
    assert "on-a" not in moves(made)


def test_idle_node_that_is_about_to_leave_is_no_destination() -> None:
    """Pods would be moved onto the node that would have gone by itself."""
    fleet = make_scene_fleet()
    made = planned(fleet, unneeded("a", fleet), unneeded("e", fleet, 60), on("a"))
    assert told(made, TaintNode) == []


def test_two_nodes_do_not_count_on_each_other() -> None:
    """Both would be drained, and neither's pods have a place."""
    fleet = make_scene_fleet(non_empty_at_once_max=10)
    made = planned(fleet, unneeded("a", fleet), unneeded("b", fleet), on("a"), on("b"))
    assert told(made, TaintNode) == ["a"]
    assert moves(made) == {"on-a": "b"}
    assert annotations_set(made) >= {("b", "unneeded-since", None)}


def test_rules_between_pods_hold_where_they_go() -> None:
    """Replicas that must be apart would be pending after the move."""
    fleet = make_scene_fleet()
    apart: dict[str, Any] = {
        "labels": {"app": "w"},
        "pod_anti_affinity": (near("kubernetes.io/hostname", app="w"),),
    }
    nodes = [unneeded("a", fleet), make_node("b", fleet)]
    made = planned(fleet, *nodes, on("a", **apart), on("b", "w2", "2500m", **apart))
    assert told(made, TaintNode) == []
    more = planned(fleet, *nodes, on("a", **apart), full("b"))
    assert moves(more) == {"on-a": "b"}


def test_node_that_a_person_tainted_is_none_of_those_being_emptied() -> None:
    """A word of maintenance on one node would keep all others from being emptied."""
    fleet = make_scene_fleet()
    taint = Taint(key=DRAINING_TAINT, value="maintenance", effect="NoSchedule")
    theirs = make_node("m", fleet, taints=(taint,))
    nodes = unneeded("a", fleet), make_node("b", fleet), theirs
    made = planned(fleet, *nodes, on("a"), on("b"), on("m"))
    assert told(made, TaintNode) == ["a"]


def test_one_node_with_pods_at_a_time_one_under_way_counted() -> None:
    """A rollout's worth of pods would move at once."""
    fleet = make_scene_fleet()
    nodes = [unneeded(n, fleet) for n in "abc"] + [make_node(n, fleet) for n in "xyz"]
    pods = [on(n) for n in "abc"] + [full(n) for n in "xyz"]
    made = planned(fleet, *nodes, *pods)
    assert told(made, TaintNode) == ["a"]
    assert kept(made)["b"] == "max-non-empty-at-once"
    assert annotations_set(made) == {("a", "drain-started", "2026-01-31T12:00:00Z")}
    going = drained("d", fleet), on("d", deleting=True)
    assert told(planned(fleet, *nodes, *pods, *going), TaintNode) == []


def test_minimum_keeps_under_used_nodes() -> None:
    """A fleet would fall below min_capacity."""
    fleet = make_scene_fleet(min_capacity=2)
    made = planned(fleet, unneeded("a", fleet), make_node("b", fleet), on("a"), full("b"))
    assert told(made, TaintNode) == []
    assert kept(made)["a"] == "min-capacity"


def test_empty_node_goes_before_one_with_pods_and_both_respect_the_minimum() -> None:
    """Pods would be moved although an idle node could go instead."""
    fleet = make_scene_fleet(min_capacity=2)
    nodes = [unneeded("a", fleet), unneeded("e", fleet), make_node("b", fleet)]
    made = planned(fleet, *nodes, on("a"), full("b"))
    assert told(made, TaintNode) == ["e"]


def test_node_that_demand_is_promised_to_is_not_emptied() -> None:
    """Pods would be evicted from a node just as others arrive."""
    fleet = make_scene_fleet()
    waiting = on("x", "waits", "2")
    pending = type(waiting)(key=waiting.key, spec=waiting.spec, owner=waiting.owner)
    made = planned(
        fleet, unneeded("a", fleet), make_node("b", fleet), on("a"), full("b", "3"), pending
    )
    assert told(made, TaintNode) == []
    assert annotations_set(made) == {("a", "unneeded-since", None)}


def test_moved_pods_do_not_push_headroom_out() -> None:
    """Balloon pods pushed out would ask for a new node: one goes, one comes, for ever."""
    fleet = make_scene_fleet()
    balloon = on("b", "balloon", "1200m", priority=-10)
    made = planned(fleet, unneeded("a", fleet), make_node("b", fleet), on("a"), full("b"), balloon)
    assert told(made, TaintNode) == []


def test_room_that_waiting_pods_need_is_not_given_to_moved_ones() -> None:
    """A pod would be moved into the room that was just promised to another, and a node bought."""
    fleet = make_scene_fleet()
    there = make_pod("waits", cpu="1", memory="64Mi", node_selector={HOSTNAME: "b"})
    nodes = [unneeded("a", fleet), make_node("b", fleet)]
    made = planned(fleet, *nodes, on("a", cpu="900m"), full("b", "3"), there)
    assert told(made, TaintNode) == []
    assert moves(made) == {}


def test_bouncing_pods_need_no_low_use_but_half_an_hour() -> None:
    """Kluster Fleet Manager's users would keep nodes that it gave back."""
    fleet = make_scene_fleet(bounce_deployment_pods=True)
    nodes = [make_node("a", fleet), make_node("b", fleet)]
    old = on("a", cpu="2500m", started_at=ago(1800))
    assert told(planned(fleet, *nodes, old, on("b", cpu="1")), TaintNode) == ["a"]
    young = on("a", cpu="2500m", started_at=ago(1799))
    assert told(planned(fleet, *nodes, young, on("b", cpu="3")), TaintNode) == []
    stateful = on("a", cpu="2500m", owner="StatefulSet", started_at=ago(9000))
    assert told(planned(fleet, *nodes, stateful, on("b", cpu="3")), TaintNode) == []


def test_node_younger_than_its_grace_period_is_no_candidate() -> None:
    """A node would be emptied while a burst is still arriving."""
    period = GracePeriod(
        starts=time(0), ends=time(0), weekdays=frozenset(range(1, 8)), seconds=7200
    )
    fleet = make_scene_fleet(grace_periods=(period,))
    made = planned(fleet, unneeded("a", fleet), make_node("b", fleet), on("a"), full("b"))
    assert kept(made)["a"] == "grace-period"


def test_nodes_of_no_fleet_are_never_emptied_but_may_take_pods() -> None:
    """Somebody else's nodes would be drained."""
    fleet = make_scene_fleet()
    stranger = unneeded("s", make_scene_fleet(name="foreign"))
    made = planned(make_settings(fleet), stranger, on("s"), make_node("b", fleet), full("b"))
    assert told(made, TaintNode) + told(made, TerminateInstance) == []


@pytest.mark.parametrize("priority", [0, 1000])
def test_node_whose_pods_fit_only_when_packed_tightly_stays(priority: int) -> None:
    """kube-scheduler spreads: a pod would find no place, and the node be taken back or bought."""
    fleet = make_scene_fleet(utilization_threshold=0.95)
    leaves = (on("a", "a-small", "500m"), on("a", "b-large", "2", priority=priority))
    made = planned(
        fleet,
        unneeded("a", fleet),
        *leaves,
        make_node("b", fleet),
        on("b", "b-full", "2"),
        make_node("c", fleet),
        on("c", "c-full", "3500m"),
    )
    assert told(made, TaintNode) == []
    assert kept(made)["a"] == "no-destination"


def test_node_stays_whose_pods_fit_only_while_another_has_the_soft_taint() -> None:
    """The taint comes off as the pods come: the small one goes there, and the large one waits."""
    fleet = make_scene_fleet(utilization_threshold=0.95)
    soft = Taint(key=UNNEEDED_TAINT, value="scale-in", effect="PreferNoSchedule")
    made = planned(
        fleet,
        unneeded("a", fleet),
        *(on("a", "a-small", "500m"), on("a", "b-large", "2")),
        unneeded("b", fleet, 300, taints=(soft,)),
        on("b", "b-full", "2"),
        make_node("c", fleet),
        on("c", "c-full", "3500m", owner="Job"),
    )
    assert told(made, TaintNode) == []
    assert kept(made)["a"] == "no-destination"


def test_nodes_that_go_together_are_spread_together() -> None:
    """Each would fit beside the other as packed; as spread, a node would be bought for one."""
    fleet = make_scene_fleet(utilization_threshold=0.95, non_empty_at_once_max=2)
    made = planned(
        fleet,
        unneeded("a", fleet, 3700),
        on("a", cpu="1"),
        unneeded("b", fleet, 3600),
        on("b", cpu="3"),
        make_node("x", fleet),
        on("x", "x-job", "1", owner="Job"),
        make_node("y", fleet),
        on("y", "y-job", "3", owner="Job"),
    )
    assert told(made, TaintNode) == ["a"]
    assert moves(made) == {"on-a": "y"}
    assert kept(made)["b"] == "no-destination"


@pytest.mark.parametrize("apart_seconds", [2, 10, 30, 60])
def test_nodes_that_wait_for_their_time_leave_turns_for_the_others(apart_seconds: int) -> None:
    """A sector with a long `unneeded_time` would keep all others from ever being looked at.

    So would plans that are as far apart as a round of all nodes takes: thirty seconds here.
    """
    slow, quick = (
        make_fleet_settings(sector=name, scale_in=ScaleInSettings(unneeded_seconds=seconds))
        for name, seconds in (("slow", 86_400), ("quick", 60))
    )
    waiting = [unneeded(f"w{n:02}", slow) for n in range(58)]
    nodes = [*waiting, make_node("a", quick), make_node("b", quick)]
    pods = [on(node.name, sector=node.labels["sector"]) for node in nodes]
    settings = make_settings(slow, quick)
    begun: set[str] = set()
    previous_at = None
    for number in range(max(8, 100 // apart_seconds)):
        at = NOW + timedelta(seconds=number * apart_seconds)
        made = planned(settings, *nodes, *pods, at=at, previous_at=previous_at)
        begun |= {node for node, _, value in annotations_set(made) if value}
        previous_at = at
    assert begun & {"a", "b"}, "neither of two that could take each other's pods was looked at"


def test_nodes_with_timers_say_so_between_their_turns() -> None:
    """What happens next, on the status page and in `plan --explain-node`, would come and go."""
    fleet = make_scene_fleet()
    nodes = [unneeded(f"n{n:02}", fleet, 30) for n in range(60)]
    pods = [on(node.name) for node in nodes]
    later = NOW + timedelta(seconds=1)
    made = planned(fleet, *nodes, *pods, at=later, previous_at=NOW)
    assert kept(made) == {node.name: "unneeded-time" for node in nodes}
    assert not made.actions


def test_stopping_pod_that_comes_again_needs_a_place_before_a_drain_begins() -> None:
    """The drain would evict the rest, find no place for it, and be given up in the next plan."""
    fleet = make_scene_fleet()
    stopping = on("a", "db-0", "1", owner="StatefulSet", deleting=True)
    objects: list[Node | Pod] = [unneeded("a", fleet), make_node("b", fleet), on("a"), stopping]
    assert told(planned(fleet, *objects, full("b", "3")), TaintNode) == []
    made = planned(fleet, *objects, full("b", "2"))
    assert told(made, EvictPod) == ["on-a"]
    assert moves(made) == {"on-a": "b"}
