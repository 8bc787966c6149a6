"""Empty nodes: timers, what forbids their end, limits, the two steps (docs/scale-in.md)."""

from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest

from reconciler.model.actions import (
    DO_NOT_DISRUPT,
    UNNEEDED_SINCE,
    AnnotateNode,
    DeleteNode,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Taint
from reconciler.model.frozen import FrozenMap
from reconciler.planner.disruption_settings import GracePeriod, ScaleInSettings
from tests.builders import (
    NOW,
    ago,
    idle,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
)
from tests.unit.planner.disruption.scale_in.scene import (
    FLEET,
    full,
    kept,
    noted,
    planned,
    told,
    unneeded,
)

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
    made = planned(fleet, unneeded("n", fleet, seconds))
    assert told(made, TaintNode) == (["n"] if leaves else [])
    assert kept(made) == ({} if leaves else {"n": "idle-time"})


@pytest.mark.parametrize(
    ("seconds", "waits", "why"),
    [(7, True, {"n": "demand"}), (29, True, {"n": "demand"}), (31, True, {}), (7, False, {})],
)
def test_node_whose_pods_may_still_come_is_not_ended_as_idle(
    seconds: float, waits: bool, why: dict[str, str]
) -> None:
    """Ended before it counts as bought in vain, it would be bought again without an end."""
    label = {"team": "data"}
    fleet = make_fleet_settings(labels=label, scale_in=ScaleInSettings(idle_threshold_seconds=4))
    pod = make_pod(node_selector=label, sector="primary")
    (purchase,) = planned(fleet, pod).demands
    node = unneeded("n", fleet, 6, created_at=ago(90), ready_changed_at=ago(seconds))
    unlabelled = FrozenMap({k: v for k, v in node.labels.items() if k != "team"})
    made = planned(
        fleet,
        replace(node, labels=unlabelled),
        *([pod] if waits else []),
        demands=(replace(purchase, bought_at=ago(300)),),
    )
    assert kept(made) == why
    assert told(made, TaintNode) == ([] if why else ["n"])


@pytest.mark.parametrize(("seconds", "leaves"), [(599, False), (600, True)])
def test_end_of_the_last_finished_pod_stands_in_for_the_annotation(
    seconds: float, leaves: bool
) -> None:
    """A node of finished Jobs would wait another threshold after each restart of ours."""
    fleet = make_fleet_settings()
    old = make_pod("old", node="n", phase="Succeeded", finished_at=ago(3000))
    last = make_pod("last", node="n", phase="Failed", finished_at=ago(seconds))
    made = planned(fleet, make_node("n", fleet), old, last)
    assert told(made, TaintNode) == (["n"] if leaves else [])
    assert told(made, AnnotateNode) == []


def test_ready_transition_restarts_the_timer() -> None:
    """A node that just came back would leave before it can be used."""
    fleet = make_fleet_settings()
    node = unneeded("n", fleet, 9000, ready_changed_at=ago(599))
    assert told(planned(fleet, node), TaintNode) == []


@pytest.mark.parametrize("text", ["yesterday", "2026-01-31T10:00:00", ""])
def test_annotation_that_is_no_time_starts_the_timer_anew(text: str) -> None:
    """Somebody's typing error would end a node, or keep it for ever."""
    fleet = make_fleet_settings()
    node = make_node("n", fleet, annotations=FrozenMap({UNNEEDED_SINCE: text}))
    made = planned(fleet, node)
    assert told(made, AnnotateNode) == ["n"]
    assert told(made, TaintNode) == []


def test_used_node_loses_its_annotation() -> None:
    """The next idle time would count from long ago."""
    fleet = make_fleet_settings()
    made = planned(fleet, unneeded("n", fleet), make_pod(node="n"))
    (action,) = made.actions
    assert isinstance(action, AnnotateNode)
    assert action.value is None


def test_node_that_a_pending_pod_will_use_is_not_empty() -> None:
    """The node would be tainted in the moment in which a pod is bound to it."""
    fleet = make_fleet_settings()
    made = planned(fleet, unneeded("n", fleet), make_pod())
    assert told(made, TaintNode) == []
    assert [p.node for p in made.placements] == ["n"]


# ---- what counts and what forbids ---------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "leaves"),
    [
        ({}, False),
        ({"owner": None}, False),
        ({"owner": "Job"}, False),
        ({"owner": "Workflow", "ends_by_itself": True, "priority": -1}, False),
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
    made = planned(fleet, unneeded("n", fleet), make_pod(node="n", **changed))
    assert told(made, TaintNode) == (["n"] if leaves else [])


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
        ({"ready": False, "ready_changed_at": ago(60)}, "not-ready"),
    ],
)
def test_node_that_something_protects_stays_with_its_reason(
    changed: dict[str, Any], code: str
) -> None:
    """An operator's word, or our own ignorance, would be overruled."""
    fleet = make_fleet_settings()
    made = planned(fleet, unneeded("n", fleet, **changed), make_node("full", fleet), full("full"))
    assert told(made, TaintNode) == []
    assert kept(made)["n"] == code


def test_annotation_with_another_value_protects_nothing() -> None:
    """`do-not-disrupt: "false"` would keep nodes for ever."""
    fleet = make_fleet_settings()
    made = planned(fleet, unneeded("n", fleet, annotations={DO_NOT_DISRUPT: "false"}))
    assert told(made, TaintNode) == ["n"]


def test_nodes_of_others_are_left_alone() -> None:
    """Nodes of managed node groups or other clusters' tools would be ended."""
    fleet = make_fleet_settings()
    stranger = make_fleet_settings("huge", "elsewhere")
    nobodys = make_node("n", annotations=noted({UNNEEDED_SINCE: 900}, {}))
    made = planned(fleet, nobodys, unneeded("m", stranger), cloud=None)
    assert made.actions == ()


# ---- limits -------------------------------------------------------------------------------


def test_min_capacity_is_held_the_longest_idle_leave_first() -> None:
    """A fleet would fall below its minimum."""
    fleet = make_fleet_settings(min_capacity=2)
    nodes = [unneeded(f"n{i}", fleet, 700 + i) for i in range(4)]
    made = planned(fleet, *nodes)
    assert told(made, TaintNode) == ["n3", "n2"]
    assert kept(made) == {"n0": "min-capacity", "n1": "min-capacity"}


@pytest.mark.parametrize(
    ("minimum", "eligible", "reasons"),
    [
        (3, 0, ["min-capacity", "min-capacity", "min-capacity"]),
        (2, 0, ["idle-time", "min-capacity", "min-capacity"]),
        (3, 1, ["min-capacity", "min-capacity", "min-capacity"]),
        (2, 1, ["idle-time", "min-capacity", "min-capacity"]),
        (0, 1, ["idle-time", "idle-time", "idle-time"]),
    ],
)
def test_idle_nodes_that_the_minimum_keeps_are_not_said_to_go_in_time(
    minimum: int, eligible: int, reasons: list[str]
) -> None:
    """Their end would be announced, and put off for ever."""
    fleet = make_fleet_settings(min_capacity=minimum)
    waiting = [unneeded(name, fleet, age) for name, age in (("a", 400), ("b", 300), ("c", 200))]
    gone = [unneeded(f"old-{number}", fleet, 3600) for number in range(eligible)]
    made = planned(fleet, *waiting, *gone)
    assert [kept(made)[name] for name in ("a", "b", "c")] == reasons
    assert all(each.until is None for each in made.kept if each.code == "min-capacity")


@pytest.mark.parametrize(
    ("minimum", "target", "left"), [(0, 0, 0), (0, 1, 0), (1, 1, 1), (1, 0, 1)]
)
def test_nodes_beyond_the_target_go_down_to_the_minimum(
    minimum: int, target: int, left: int
) -> None:
    """Somebody lowered a target: EC2 ends nothing by itself, and idle nodes would stay for ever."""
    fleet = make_fleet_settings(min_capacity=minimum)
    made = planned(fleet, unneeded("a", fleet), unneeded("b", fleet), target=target)
    assert len(told(made, TaintNode)) == 2 - left


def test_nodes_already_draining_count_for_the_minimum() -> None:
    """Two plans in a row would each take the last node but one."""
    fleet = make_fleet_settings(min_capacity=1)
    busy = make_pod(node="d", deleting=True)
    nodes = [unneeded("a", fleet), unneeded("b", fleet), make_node("d", fleet, draining=True)]
    assert told(planned(fleet, *nodes, busy), TaintNode) in ([], ["a"])


def test_max_empty_at_once_counts_nodes_already_draining() -> None:
    """A slow termination would let ever more nodes leave at once."""
    fleet = make_fleet_settings(scale_in=ScaleInSettings(empty_at_once_max=2))
    others = make_fleet_settings("large")
    nodes = [unneeded(f"n{i}", fleet) for i in range(8)]
    drains = make_node("d", others, draining=True)
    made = planned(make_settings(fleet, others), *nodes, drains, cloud=None)
    assert len(told(made, TaintNode)) == 1
    assert list(kept(made).values()).count("max-empty-at-once") == 7


# ---- the second step ----------------------------------------------------------------------


def test_empty_node_is_tainted_in_one_plan_and_ended_in_the_next() -> None:
    """A pod bound between look and act would be killed."""
    fleet = make_fleet_settings()
    first = planned(fleet, unneeded("n", fleet))
    assert told(first, TaintNode) == ["n"]
    assert told(first, TerminateInstance) == []
    assert first.fleets[0].target == 1
    second = planned(fleet, unneeded("n", fleet, draining=True))
    (action,) = second.actions
    assert isinstance(action, TerminateInstance)
    assert (action.instance, action.decrement) == ("i-n", True)
    assert (second.fleets[0].current, second.fleets[0].target) == (1, 0)


def test_draining_node_that_got_a_pod_is_given_back() -> None:
    """The pod that slipped in would be killed."""
    fleet = make_fleet_settings()
    made = planned(fleet, unneeded("n", fleet, draining=True), make_pod(node="n"))
    assert told(made, UntaintNode) == ["n"]
    assert told(made, TerminateInstance) == []


def test_draining_node_that_became_protected_is_given_back() -> None:
    """An operator who steps in at the last moment would be overruled."""
    fleet = make_fleet_settings()
    node = unneeded("n", fleet, draining=True, annotations={DO_NOT_DISRUPT: "true"})
    made = planned(fleet, node)
    assert told(made, UntaintNode) == ["n"]


def test_crash_between_lowering_and_ending_does_not_lower_twice() -> None:
    """The target would go down for a node that is still counted, and EC2 end another one."""
    fleet = make_fleet_settings()
    nodes = [make_node("busy", fleet), unneeded("n", fleet, draining=True)]
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
    made = planned(fleet, node, cloud=cloud)
    assert told(made, DeleteNode) == deleted
    assert told(made, TaintNode) == []


def test_nodes_of_a_missing_fleet_are_not_ended() -> None:
    """A describe call that left a fleet out would end its nodes."""
    fleet = make_fleet_settings()
    node = unneeded("n", fleet, draining=True)
    made = planned(fleet, node, cloud=make_cloud())
    assert told(made, TerminateInstance) == []


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
    made = planned(make_settings(fleet, other), dead, alive, make_pod(node="m"), cloud=cloud)
    assert told(made, DeleteNode) == deleted


def test_empty_answers_of_ec2_end_nothing() -> None:
    """`{}` from a throttled call would look like a cluster without instances."""
    fleet = make_fleet_settings()
    cloud = make_cloud(make_fleet(fleet, 1), instances_known=False)
    made = planned(fleet, make_node("n", fleet), cloud=cloud)
    assert {type(a) for a in made.actions} <= {AnnotateNode}


def test_scale_in_and_scale_up_of_one_fleet_do_not_meet() -> None:
    """A node would be bought while an equal one is being ended."""
    fleet = make_fleet_settings(cpu=4)
    nodes = [unneeded("idle", fleet), make_node("full", fleet)]
    pods = [make_pod("runs", node="full", cpu=4), make_pod("waits", cpu=4)]
    made = planned(fleet, *nodes, *pods)
    assert told(made, SetCapacity) == []
    assert told(made, TaintNode) == []


def test_clock_that_jumps_back_removes_nothing() -> None:
    """Timers of the future would be negative, or count as ages."""
    fleet = make_fleet_settings()
    nodes = [unneeded(f"n{i}", fleet, 900) for i in range(2)]
    made = planned(fleet, *nodes, at=NOW - timedelta(hours=2))
    assert told(made, TaintNode) == []


def test_node_that_still_starts_is_not_idle() -> None:
    """Pods that wait count on it: it would be ended, and its like bought, for ever."""
    agent = Taint(key="node.cilium.io/agent-not-ready", effect="NoExecute")
    node = unneeded("n", FLEET, created_at=ago(700), ready_changed_at=ago(690), taints=(agent,))
    made = planned(FLEET, node, make_pod(cpu="3"))
    assert told(made, TaintNode) == []
    assert [(p.fleet, p.launching) for p in made.placements] == [(FLEET.name, 0)]
    assert kept(made)["n"] == "not-ready"
    (detail,) = (each.detail for each in planned(FLEET, node).kept)
    assert "pending pods" not in detail, "no pod waits"


def test_waiting_node_names_the_grace_period_and_counts_to_its_end() -> None:
    """The time to go was that of the hour in which one looked."""
    noon = GracePeriod(
        starts=time(7), ends=time(12, 10), weekdays=frozenset(range(1, 8)), seconds=3600
    )
    fleet = make_fleet_settings(scale_in=idle(300), grace_periods=(noon,))
    (found,) = planned(fleet, unneeded("n", fleet, 60)).kept
    assert found.code == "idle-time"
    assert found.detail == "empty for 1m, 10m to go; a grace period asks for 1h"
    assert found.until == NOW + timedelta(minutes=10)
