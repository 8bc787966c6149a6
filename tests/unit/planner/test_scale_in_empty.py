"""Empty nodes: timers, what forbids their end, limits, the two steps (behaviour, 5 and 11)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.actions import (
    DO_NOT_DISRUPT,
    UNNEEDED_SINCE,
    AnnotateNode,
    AnyAction,
    DeleteNode,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, ScaleInSettings
from tests.builders import (
    NOW,
    ago,
    make_cloud,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)


def idle_node(name: str, fleet: FleetSettings, seconds: float = 900, **changed: Any) -> Node:
    """An empty node whose timer started so long ago."""
    extra = changed.pop("annotations", {})
    since = ago(seconds).isoformat().replace("+00:00", "Z")
    return make_node(
        name, fleet, annotations=FrozenMap({UNNEEDED_SINCE: since, **extra}), **changed
    )


def world(fleet: FleetSettings, *objects: Node | Pod, target: int | None = None) -> Snapshot:
    """Nodes of one fleet that EC2 runs, and pods."""
    nodes = [o for o in objects if isinstance(o, Node)]
    live = make_fleet(fleet, len(nodes) if target is None else target)
    return make_snapshot(*objects, cloud=make_cloud_of(nodes, live))


def planned(fleet: FleetSettings, *objects: Node | Pod, **changed: Any) -> Plan:
    """The plan of such a world."""
    return plan(world(fleet, *objects, **changed), make_settings(fleet))


def of_type(made: Plan, kind: type[AnyAction]) -> list[str]:
    """The nodes of the plan's actions of one kind."""
    return [str(getattr(a, "node", "")) for a in made.actions if isinstance(a, kind)]


def kept(made: Plan) -> dict[str, str]:
    """Why nodes stay."""
    return {k.node: k.code for k in made.kept}


# ---- timers -------------------------------------------------------------------------------


def test_empty_node_without_a_trace_starts_its_timer_now() -> None:
    """Pods that were deleted leave no trace: the node would leave at once."""
    fleet = make_fleet_settings()
    made = planned(fleet, make_node("n", fleet))
    (action,) = made.actions
    assert isinstance(action, AnnotateNode)
    assert (action.node, action.key, action.value) == ("n", UNNEEDED_SINCE, "2026-01-31T12:00:00Z")


@pytest.mark.parametrize(("seconds", "leaves"), [(599, False), (600, True), (-60, False)])
def test_node_leaves_when_its_annotation_is_old_enough(seconds: float, leaves: bool) -> None:
    """Too early costs restarts, too late costs money, and a clock jump removes nothing."""
    fleet = make_fleet_settings()
    made = planned(fleet, idle_node("n", fleet, seconds))
    assert of_type(made, TaintNode) == (["n"] if leaves else [])
    assert kept(made) == ({} if leaves else {"n": "idle-time"})


@pytest.mark.parametrize(("seconds", "leaves"), [(599, False), (600, True)])
def test_end_of_the_last_finished_pod_stands_in_for_the_annotation(
    seconds: float, leaves: bool
) -> None:
    """A node of finished Jobs would wait another threshold after each restart of ours."""
    fleet = make_fleet_settings()
    old = make_pod("old", node="n", phase="Succeeded", finished_at=ago(3000))
    last = make_pod("last", node="n", phase="Failed", finished_at=ago(seconds))
    made = planned(fleet, make_node("n", fleet), old, last)
    assert of_type(made, TaintNode) == (["n"] if leaves else [])
    assert of_type(made, AnnotateNode) == []


def test_ready_transition_restarts_the_timer() -> None:
    """A node that just came back would leave before it can be used."""
    fleet = make_fleet_settings()
    node = idle_node("n", fleet, 9000, ready_changed_at=ago(599))
    assert of_type(planned(fleet, node), TaintNode) == []


@pytest.mark.parametrize("text", ["yesterday", "2026-01-31T10:00:00", ""])
def test_annotation_that_is_no_time_starts_the_timer_anew(text: str) -> None:
    """Somebody's typing error would end a node, or keep it for ever."""
    fleet = make_fleet_settings()
    node = make_node("n", fleet, annotations=FrozenMap({UNNEEDED_SINCE: text}))
    made = planned(fleet, node)
    assert of_type(made, AnnotateNode) == ["n"]
    assert of_type(made, TaintNode) == []


def test_used_node_loses_its_annotation() -> None:
    """The next idle time would count from long ago."""
    fleet = make_fleet_settings()
    made = planned(fleet, idle_node("n", fleet), make_pod(node="n"))
    (action,) = made.actions
    assert isinstance(action, AnnotateNode)
    assert action.value is None


def test_node_that_a_pending_pod_will_use_is_not_empty() -> None:
    """The node would be tainted in the moment in which a pod is bound to it."""
    fleet = make_fleet_settings()
    made = planned(fleet, idle_node("n", fleet), make_pod())
    assert of_type(made, TaintNode) == []
    assert [p.node for p in made.placements] == ["n"]


# ---- what counts and what forbids ---------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "leaves"),
    [
        ({}, False),
        ({"owner": None}, False),
        ({"owner": "Job"}, False),
        ({"phase": "Pending"}, False),
        ({"deleting": True}, False),
        ({"unreadable": True}, False),
        ({"unreadable": True, "owner": "DaemonSet"}, False),
        ({"priority": -1, "unreadable": True}, False),
        ({"phase": "Unknown"}, False),
        ({"owner": "DaemonSet"}, True),
        ({"owner": "Node", "mirror": True}, True),
        ({"phase": "Succeeded"}, True),
        ({"phase": "Failed"}, True),
        ({"priority": -1}, True),
        ({"namespace": "kube-system"}, False),
    ],
)
def test_only_daemon_mirror_finished_and_balloon_pods_leave_a_node_empty(
    changed: dict[str, Any], leaves: bool
) -> None:
    """Running work would be ended."""
    fleet = make_fleet_settings()
    made = planned(fleet, idle_node("n", fleet), make_pod(node="n", **changed))
    assert of_type(made, TaintNode) == (["n"] if leaves else [])


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"annotations": {DO_NOT_DISRUPT: "true"}}, "protected"),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "protected"),
        (
            {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}},
            "protected",
        ),
        ({"unreadable": True}, "unreadable"),
        ({"instance_id": None}, "unreadable"),
        ({"ready": False}, "not-ready"),
    ],
)
def test_node_that_something_protects_stays_with_its_reason(
    changed: dict[str, Any], code: str
) -> None:
    """An operator's word, or our own ignorance, would be overruled."""
    fleet = make_fleet_settings()
    made = planned(fleet, idle_node("n", fleet, **changed))
    assert of_type(made, TaintNode) == []
    assert kept(made) == {"n": code}


def test_annotation_with_another_value_protects_nothing() -> None:
    """`do-not-disrupt: "false"` would keep nodes for ever."""
    fleet = make_fleet_settings()
    made = planned(fleet, idle_node("n", fleet, annotations={DO_NOT_DISRUPT: "false"}))
    assert of_type(made, TaintNode) == ["n"]


def test_nodes_of_others_are_left_alone() -> None:
    """Nodes of managed node groups or other clusters' tools would be ended."""
    fleet = make_fleet_settings()
    stranger = make_fleet_settings("huge", "elsewhere")
    made = plan(make_snapshot(idle_node("n", None), idle_node("m", stranger)), make_settings(fleet))  # type: ignore[arg-type]
    assert made.actions == ()


# ---- limits -------------------------------------------------------------------------------


def test_min_capacity_is_held_the_longest_idle_leave_first() -> None:
    """A fleet would fall below its minimum."""
    fleet = make_fleet_settings(min_capacity=2)
    nodes = [idle_node(f"n{i}", fleet, 700 + i) for i in range(4)]
    made = planned(fleet, *nodes)
    assert of_type(made, TaintNode) == ["n3", "n2"]
    assert kept(made) == {"n0": "min-capacity", "n1": "min-capacity"}


def test_nodes_already_draining_count_for_the_minimum() -> None:
    """Two plans in a row would each take the last node but one."""
    fleet = make_fleet_settings(min_capacity=1)
    busy = make_pod(node="d", deleting=True)
    nodes = [idle_node("a", fleet), idle_node("b", fleet), make_node("d", fleet, draining=True)]
    assert of_type(planned(fleet, *nodes, busy), TaintNode) in ([], ["a"])


def test_max_empty_at_once_counts_nodes_already_draining() -> None:
    """A slow termination would let ever more nodes leave at once."""
    fleet = make_fleet_settings(scale_in=ScaleInSettings(empty_at_once_max=2))
    others = make_fleet_settings("large")
    nodes = [idle_node(f"n{i}", fleet) for i in range(8)]
    drains = make_node("d", others, draining=True)
    made = plan(make_snapshot(*nodes, drains), make_settings(fleet, others))
    assert len(of_type(made, TaintNode)) == 1
    assert list(kept(made).values()).count("max-empty-at-once") == 7


def test_type_spares_are_kept_until_the_type_threshold() -> None:
    """The next burst would wait for a launch although spares were asked for."""
    spares = ScaleInSettings(type_spares=1, type_idle_threshold_seconds=3600)
    fleet = make_fleet_settings(scale_in=spares)
    old = idle_node("c", fleet, 7200, ready_changed_at=ago(9000))
    made = planned(fleet, idle_node("a", fleet, 900), idle_node("b", fleet, 1000), old)
    assert sorted(of_type(made, TaintNode)) == ["a", "c"]
    assert kept(made) == {"b": "type-spares"}


def test_spares_count_per_instance_type() -> None:
    """One type's spare would let the other type's last node go."""
    spares = ScaleInSettings(type_spares=1, type_idle_threshold_seconds=3600)
    fleet = make_fleet_settings(scale_in=spares)
    other = idle_node("b", fleet, labels={"node.kubernetes.io/instance-type": "other"})
    made = planned(fleet, idle_node("a", fleet), other)
    assert of_type(made, TaintNode) == []


@pytest.mark.parametrize(
    ("idle", "busy", "held"),
    [(3, 0, 0), (4, 0, 4), (4, 9, 4), (4, 10, 0), (9, 21, 0), (10, 20, 10)],
)
def test_safety_stop_holds_more_than_three_and_thirty_percent(
    idle: int, busy: int, held: int
) -> None:
    """An API that answers with an empty list would empty the cluster."""
    fleet = make_fleet_settings()
    nodes = [idle_node(f"i{n}", fleet) for n in range(idle)]
    used = [make_node(f"b{n}", fleet) for n in range(busy)]
    pods = [make_pod(f"p{n}", node=f"b{n}") for n in range(busy)]
    made = planned(fleet, *nodes, *used, *pods)
    assert len(made.held) == held
    assert len(of_type(made, TaintNode)) == (0 if held else idle)
    assert {h.code for h in made.held} <= {"safety-stop"}


def test_second_full_relist_that_agrees_lifts_the_safety_stop() -> None:
    """A cluster that really is empty would be paid for until somebody looks."""
    fleet = make_fleet_settings()
    snapshot = world(fleet, *(idle_node(f"n{i}", fleet) for i in range(6)))
    again = replace(snapshot, cluster=replace(snapshot.cluster, relists=2))
    assert len(of_type(plan(again, make_settings(fleet)), TaintNode)) == 6


# ---- the second step ----------------------------------------------------------------------


def test_empty_node_is_tainted_in_one_plan_and_ended_in_the_next() -> None:
    """A pod bound between look and act would be killed."""
    fleet = make_fleet_settings()
    first = planned(fleet, idle_node("n", fleet))
    assert of_type(first, TaintNode) == ["n"]
    assert of_type(first, TerminateInstance) == []
    assert first.fleets[0].target == 1
    second = planned(fleet, idle_node("n", fleet, draining=True))
    (action,) = second.actions
    assert isinstance(action, TerminateInstance)
    assert (action.instance, action.decrement) == ("i-n", True)
    assert (second.fleets[0].current, second.fleets[0].target) == (1, 0)


def test_draining_node_that_got_a_pod_is_given_back() -> None:
    """The pod that slipped in would be killed."""
    fleet = make_fleet_settings()
    made = planned(fleet, idle_node("n", fleet, draining=True), make_pod(node="n"))
    assert of_type(made, UntaintNode) == ["n"]
    assert of_type(made, TerminateInstance) == []


def test_draining_node_that_became_protected_is_given_back() -> None:
    """An operator who steps in at the last moment would be overruled."""
    fleet = make_fleet_settings()
    node = idle_node("n", fleet, draining=True, annotations={DO_NOT_DISRUPT: "true"})
    made = planned(fleet, node)
    assert of_type(made, UntaintNode) == ["n"]


def test_crash_between_lowering_and_ending_does_not_lower_twice() -> None:
    """The target would go down for a node that is still counted, and EC2 end another one."""
    fleet = make_fleet_settings()
    nodes = [make_node("busy", fleet), idle_node("n", fleet, draining=True)]
    made = planned(fleet, *nodes, make_pod(node="busy"), target=1)
    ended = [a for a in made.actions if isinstance(a, TerminateInstance)]
    assert [(a.node, a.decrement) for a in ended] == [("n", False)]
    assert made.fleets[0].target == 1


@pytest.mark.parametrize(("state", "deleted"), [("terminated", ["n"]), ("shutting-down", [])])
def test_node_object_is_deleted_when_its_instance_is_terminated(
    state: str, deleted: list[str]
) -> None:
    """Ghost nodes would attract pods for minutes; or a node vanish while its pods still end."""
    fleet = make_fleet_settings()
    node, live = make_node("n", fleet), make_fleet(fleet)
    cloud = make_cloud(live, instances=[make_instance(node, live, state=state)])
    made = plan(make_snapshot(node, cloud=cloud), make_settings(fleet))
    assert of_type(made, DeleteNode) == deleted
    assert of_type(made, TaintNode) == []


def test_nodes_of_a_missing_fleet_are_not_ended() -> None:
    """A describe call that left a fleet out would end its nodes."""
    fleet = make_fleet_settings()
    node = idle_node("n", fleet, draining=True)
    made = plan(make_snapshot(node, cloud=make_cloud()), make_settings(fleet))
    assert of_type(made, TerminateInstance) == []


@pytest.mark.parametrize(("answered", "deleted"), [(True, ["n"]), (False, [])])
def test_unready_node_is_only_a_name_where_ec2_answered_for_its_fleet(
    answered: bool, deleted: list[str]
) -> None:
    """An answer that left out a fleet and its instances would make running nodes look gone."""
    fleet, other = make_fleet_settings(), make_fleet_settings("large")
    dead = make_node("n", fleet, ready=False)
    alive, live = make_node("m", other), make_fleet(other, 1)
    fleets = [live, make_fleet(fleet, 1)] if answered else [live]
    cloud = make_cloud(*fleets, instances=[make_instance(alive, live)])
    snapshot = make_snapshot(dead, alive, make_pod(node="m"), cloud=cloud)
    assert of_type(plan(snapshot, make_settings(fleet, other)), DeleteNode) == deleted


def test_empty_answers_of_ec2_end_nothing() -> None:
    """`{}` from a throttled call would look like a cluster without instances."""
    fleet = make_fleet_settings()
    cloud = make_cloud(make_fleet(fleet, 1), instances_known=False)
    made = plan(make_snapshot(make_node("n", fleet), cloud=cloud), make_settings(fleet))
    assert {type(a) for a in made.actions} <= {AnnotateNode}


def test_scale_in_and_scale_up_of_one_fleet_do_not_meet() -> None:
    """A node would be bought while an equal one is being ended."""
    fleet = make_fleet_settings(cpu=4)
    nodes = [idle_node("idle", fleet), make_node("full", fleet)]
    pods = [make_pod("runs", node="full", cpu=4), make_pod("waits", cpu=4)]
    made = planned(fleet, *nodes, *pods)
    assert of_type(made, SetCapacity) == []
    assert of_type(made, TaintNode) == []


def test_clock_that_jumps_back_removes_nothing() -> None:
    """Timers of the future would be negative, or count as ages."""
    fleet = make_fleet_settings()
    snapshot = world(fleet, *(idle_node(f"n{i}", fleet, 900) for i in range(2)))
    earlier = replace(snapshot, at=NOW - timedelta(hours=2))
    assert of_type(plan(earlier, make_settings(fleet)), TaintNode) == []
