"""Nodes that EC2 takes back: emptied in time, replaced once (docs/interruptions.md)."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    INTERRUPTION,
    REPLACEMENT_ASKED,
    AnnotateNode,
    DeletePod,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node, Pod, PodDisruptionBudget, Toleration
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import DisruptionBudget
from reconciler.planner.nodes.interruptions import read_notice
from reconciler.planner.planner import plan
from tests.builders import ago, make_node, make_settings, make_snapshot, selecting
from tests.unit.planner.disruption.interrupted_nodes import FLEET, TAINT, begun, noticed, targets
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


def asked_in_place_of(made: Plan) -> list[str]:
    """The nodes that the plan notes as replaced."""
    return [
        a.node for a in made.actions if isinstance(a, AnnotateNode) and a.key == REPLACEMENT_ASKED
    ]


def test_pods_get_room_first_and_are_evicted_with_the_time_that_is_left() -> None:
    """A spot notice once did nothing: pods died with their node."""
    pod = on("a", termination_grace_seconds=600)
    made = planned(FLEET, noticed("a"), make_node("b", FLEET), pod, full("b"))
    assert [a.taint for a in made.actions if isinstance(a, TaintNode)] == [TAINT]
    assert [a.grace_seconds for a in made.actions if isinstance(a, EvictPod)] == [110]
    assert moves(made) == {"on-a": "b"}
    assert targets(made) == []
    assert told(made, TerminateInstance) == []


def test_pod_that_comes_back_to_the_node_is_evicted_once() -> None:
    """It tolerates every taint: each cycle of the node's last two minutes evicted it again."""
    everything = (Toleration(operator="Exists"),)
    first = on("a", "first", tolerations=everything, created_at=ago(3600))
    again = on("a", "again", tolerations=everything, created_at=ago(10))
    other = on("a", "other", created_at=ago(10))
    made = planned(FLEET, begun("a"), make_node("b", FLEET), first, again, other)
    assert told(made, EvictPod) == ["first", "other"]


@pytest.mark.parametrize("marked", [True, False])
def test_pod_that_came_since_the_notice_waits_while_the_taint_is_refused(marked: bool) -> None:
    """Without the taint kube-scheduler binds evicted pods to the node again and again."""
    noted = {DRAIN_STARTED: rfc3339(ago(10))} if marked else {}
    pods = [on("a", name, created_at=ago(age)) for name, age in (("first", 60), ("again", 5))]
    node = noticed("a", annotations=noted)
    made = planned(FLEET, node, make_node("b", FLEET), *pods)
    assert told(made, EvictPod) == ["first"]
    last = planned(FLEET, noticed("a", 14, annotations=noted), make_node("b", FLEET), *pods)
    ended = [a.pod.name for a in last.actions if isinstance(a, EvictPod | DeletePod)]
    assert sorted(ended) == ["again", "first"]


@pytest.mark.parametrize("left_seconds", [110, 14])
def test_forced_steps_go_on_where_the_mark_of_the_node_fails(left_seconds: float) -> None:
    """The pods would die with the machine because of an annotation."""
    made = planned(FLEET, noticed("a", left_seconds), make_node("b", FLEET), on("a"))
    steps = [a for a in made.actions if isinstance(a, TaintNode | EvictPod | DeletePod)]
    assert len(steps) == 2
    assert all(step.forced for step in steps)


def test_replacement_is_asked_for_in_the_same_plan_before_anything_is_evicted() -> None:
    """Its pods would wait for EC2's own replacement, two minutes and a boot later."""
    made = planned(FLEET, noticed("a"), make_node("b", FLEET), full("a"), full("b"))
    assert targets(made) == [(2, 3)]
    assert isinstance(made.actions[0], SetCapacity)
    assert told(made, EvictPod) == ["full-a"]
    assert asked_in_place_of(made) == ["a"]
    place = next(p for p in made.placements if p.pod.name == "full-a")
    assert (place.moved_from, place.fleet, place.new_node) == ("a", FLEET.name, 0)


def test_replacement_is_marked_before_evictions_that_may_fail() -> None:
    """The mark would be skipped after a 429, and the node be replaced twice."""
    made = planned(FLEET, noticed("a"), full("a"))
    order = [a for a in made.actions if getattr(a, "node", "") == "a"]
    mark = next(i for i, a in enumerate(order) if getattr(a, "key", "") == REPLACEMENT_ASKED)
    assert mark < next(i for i, a in enumerate(order) if isinstance(a, EvictPod))


def test_next_plan_buys_nothing_more_while_the_replacement_launches() -> None:
    """Every cycle of the two minutes would buy another node."""
    replaced = {REPLACEMENT_ASKED: rfc3339(ago(30))}
    node = begun("a", annotations=replaced)
    made = planned(FLEET, node, make_node("b", FLEET), full("a"), full("b"), target=3)
    assert targets(made) == []
    assert [p.launching for p in made.placements if p.moved_from] == [0]


def test_evicted_pod_takes_the_place_that_was_bought_for_it() -> None:
    """Its successor is another pod, and would be bought for once more."""
    replaced = {REPLACEMENT_ASKED: rfc3339(ago(30))}
    successor = replace(full("a"), node_name=None, phase="Pending")
    node = begun("a", annotations=replaced)
    made = planned(FLEET, node, make_node("b", FLEET), successor, full("b"), target=3)
    assert targets(made) == []


def test_empty_node_that_was_replaced_is_ended_with_its_part_of_the_target() -> None:
    """EC2 would launch one more when it takes the instance: bought twice."""
    replaced = {REPLACEMENT_ASKED: rfc3339(ago(30))}
    nodes = [begun("a", annotations=replaced), make_node("b", FLEET), make_node("c", FLEET)]
    made = planned(FLEET, *nodes, full("b"), full("c"), target=3)
    ends = [a for a in made.actions if isinstance(a, TerminateInstance)]
    assert [(a.node, a.decrement, a.precondition) for a in ends] == [("a", True, "empty")]
    assert [f.target for f in made.fleets] == [2]


def test_empty_node_without_a_purchase_in_its_place_is_left_to_ec2() -> None:
    """Its fleet replaces it: ended by us the target would fall, or the end come sooner."""
    nodes = [begun("a"), make_node("b", FLEET), make_node("c", FLEET)]
    made = planned(FLEET, *nodes, full("b"), full("c"))
    assert told(made, TerminateInstance) == []
    assert [f.target for f in made.fleets] == [3]


def test_purchase_of_days_ago_is_none_in_place_of_a_node_that_ec2_takes_now() -> None:
    """Its fleet's target fell for a node of another fleet, or for one that was not used."""
    before = {REPLACEMENT_ASKED: f"{rfc3339(ago(3 * 86_400))}/2/7"}
    nodes = [begun("a", annotations=before), make_node("b", FLEET), make_node("c", FLEET)]
    made = planned(FLEET, *nodes, full("b"), full("c"))
    assert told(made, TerminateInstance) == []
    assert [f.target for f in made.fleets] == [3]
    made = planned(FLEET, begun("a", annotations=before), full("a"))
    assert targets(made) == [(1, 2)]
    assert asked_in_place_of(made) == ["a"], "what this plan asks for counts"


@pytest.mark.parametrize(("joined_seconds_ago", "ended"), [(120, ["a"]), (900, [])])
def test_node_that_a_recommendation_had_replaced_is_ended_with_its_part_of_the_target(
    joined_seconds_ago: float, ended: list[str]
) -> None:
    """EC2's notice usually follows its recommendation, whose successor would be bought twice."""
    before = {REPLACEMENT_ASKED: rfc3339(ago(300))}
    successor = make_node("c", FLEET, created_at=ago(joined_seconds_ago))
    old = make_node("b", FLEET, created_at=ago(86_400))
    made = planned(FLEET, begun("a", annotations=before), old, successor, full("b"), on("c"))
    assert told(made, TerminateInstance) == ended


def test_target_never_falls_below_the_minimum() -> None:
    """The mark stayed on the node although somebody set the target back."""
    fleet = make_scene_fleet(min_capacity=3)
    replaced = {REPLACEMENT_ASKED: rfc3339(ago(30))}
    nodes = [begun("a", fleet=fleet, annotations=replaced)]
    nodes += [make_node("b", fleet), make_node("c", fleet)]
    made = planned(fleet, *nodes, full("b"), full("c"))
    assert [f.target for f in made.fleets] == [3]


def test_node_at_the_minimum_is_replaced_once() -> None:
    """The raise for the minimum counts as its replacement."""
    fleet = make_scene_fleet(min_capacity=2)
    made = planned(fleet, begun("a", fleet=fleet), make_node("b", fleet), full("b"), target=2)
    assert targets(made) == [(2, 3)]
    assert asked_in_place_of(made) == ["a"]


def test_pods_of_one_budget_go_one_after_the_other_until_time_runs_out() -> None:
    """The Eviction API would refuse them, and a deletion would break the budget early."""
    pods = [on("a", f"p{n}", labels={"app": "x"}) for n in range(3)]
    budget = PodDisruptionBudget(
        namespace="ns", name="b", selector=selecting(app="x"), disruptions_allowed=1
    )
    early = planned(FLEET, noticed("a"), make_node("b", FLEET), *pods, budgets=(budget,))
    assert len(told(early, EvictPod)) == 1
    assert told(early, DeletePod) == []
    late = planned(FLEET, begun("a", 30), make_node("b", FLEET), *pods, budgets=(budget,))
    assert [a.grace_seconds for a in late.actions if isinstance(a, DeletePod)] == [30, 30, 30]
    assert told(late, EvictPod) == []


def test_pod_of_two_budgets_is_not_asked_for_and_uses_neither_up() -> None:
    """The Eviction API refuses it in each plan; it is deleted at the end, as other pods are."""
    both = on("a", "both", labels={"app": "x", "tier": "y"})
    other = on("a", "other", labels={"app": "x"})
    budgets = tuple(
        PodDisruptionBudget(
            namespace="ns", name=key, selector=selecting(**{key: value}), disruptions_allowed=1
        )
        for key, value in (("app", "x"), ("tier", "y"))
    )
    early = planned(FLEET, noticed("a"), make_node("b", FLEET), both, other, budgets=budgets)
    assert told(early, EvictPod) == ["other"]
    late = planned(FLEET, begun("a", 30), make_node("b", FLEET), both, budgets=budgets)
    assert [a.pod.name for a in late.actions if isinstance(a, DeletePod)] == ["both"]


@pytest.mark.parametrize("made_by", [{"owner": "Job"}, {"owner": "Pod", "ends_by_itself": True}])
def test_jobs_may_finish_until_thirty_seconds_before_the_end(made_by: dict[str, Any]) -> None:
    """A Job that needs one more minute would start from its beginning."""
    job = on("a", **made_by, termination_grace_seconds=5)
    assert told(planned(FLEET, begun("a", 31), job), EvictPod) == []
    late = planned(FLEET, begun("a", 30), job)
    assert [a.grace_seconds for a in late.actions if isinstance(a, EvictPod)] == [5]
    last = planned(FLEET, begun("a", 15), job)
    assert [a.grace_seconds for a in last.actions if isinstance(a, DeletePod)] == [5]
    assert told(last, EvictPod) == []


def test_plan_says_when_more_is_done_with_the_pods_of_an_interrupted_node() -> None:
    """With pauses of 20 s a Job's pod was often deleted before any plan could have it evicted."""
    for left, seconds in ((60, 30), (31, 1), (30, 15), (16, 1), (15, None), (-60, None)):
        (node,) = planned(FLEET, begun("a", left), on("a", owner="Job")).interrupted
        assert node.next_step_seconds == seconds
    (empty,) = planned(FLEET, begun("a", 60), make_node("b", FLEET)).interrupted
    assert empty.next_step_seconds is None


def test_pod_of_a_job_is_deleted_only_where_its_budget_forbids_the_eviction() -> None:
    """A deleted pod has no condition DisruptionTarget: podFailurePolicy counts it as a failure."""
    jobs = [on("a", f"j{n}", owner="Job", labels={"app": "x"}) for n in range(2)]
    budget = PodDisruptionBudget(
        namespace="ns", name="b", selector=selecting(app="x"), disruptions_allowed=1
    )
    made = planned(FLEET, begun("a", 30), *jobs, on("a", "web"), budgets=(budget,))
    assert told(made, EvictPod) == ["j0"]
    assert [a.pod.name for a in made.actions if isinstance(a, DeletePod)] == ["j1", "web"]


def test_notice_that_comes_in_the_last_seconds_evicts_first() -> None:
    """No pod was asked for before; what the Eviction API refuses is deleted by the next plan."""
    pods = [on("a", "job", owner="Job"), on("a", "web")]
    first = planned(FLEET, noticed("a", 12), *pods)
    assert told(first, EvictPod) == ["job", "web"]
    assert told(first, DeletePod) == []
    then = planned(FLEET, begun("a", 10), *pods)
    assert [a.pod.name for a in then.actions if isinstance(a, DeletePod)] == ["job", "web"]


def test_pods_that_cannot_come_back_elsewhere_are_left() -> None:
    """DaemonSet and mirror pods would return to the very node."""
    pods = [on("a", "d", owner="DaemonSet"), on("a", "m", mirror=True)]
    made = planned(FLEET, begun("a", 20), *pods, on("a", "gone", deleting=True))
    assert told(made, EvictPod) + told(made, DeletePod) == []


def test_storm_is_not_held_by_the_safety_stop_nor_by_disruption_budgets() -> None:
    """EC2 takes 30 of 100 nodes whatever a limit of ours says."""
    settings = make_settings(FLEET)
    settings = replace(settings, disruption_budgets=(DisruptionBudget(nodes=0),))
    nodes = [noticed(f"a{n}") if n < 6 else make_node(f"b{n}", FLEET) for n in range(10)]
    pods = [full(node.name) for node in nodes]
    made = planned(settings, *nodes, *pods)
    assert sorted(told(made, TaintNode)) == [f"a{n}" for n in range(6)]
    assert made.held == ()
    assert targets(made) == [(10, 16)]


def test_interrupted_nodes_use_disruption_budgets_up() -> None:
    """A storm beside a consolidation would take a service down."""
    settings = replace(make_settings(FLEET), disruption_budgets=(DisruptionBudget(nodes=1),))
    idle = unneeded("idle", FLEET)
    assert "idle" in told(planned(settings, idle, make_node("b", FLEET), full("b")), TaintNode)
    made = planned(settings, idle, noticed("a"), make_node("b", FLEET), on("a"), full("b"))
    assert "idle" not in told(made, TaintNode)


def test_drain_for_scale_in_becomes_one_for_the_interruption() -> None:
    """Its taint would be taken off again for pending pods, two minutes before its end."""
    node = drained("a", FLEET)
    text = f"terminate/{rfc3339(ago(-100))}"
    node = replace(node, annotations=FrozenMap({**node.annotations, INTERRUPTION: text}))
    made = planned(FLEET, node, make_node("b", FLEET), on("a"), full("b", "3900m"))
    assert told(made, UntaintNode) == []
    assert [a.taint for a in made.actions if isinstance(a, TaintNode)] == [TAINT]


@pytest.mark.parametrize("annotated", [True, False])
def test_node_that_ec2_did_not_take_is_given_back(annotated: bool) -> None:
    """It would stay tainted until an operator finds it."""
    node = begun("a", -301)
    if not annotated:
        rest = {key: text for key, text in node.annotations.items() if key != INTERRUPTION}
        node = replace(node, annotations=FrozenMap(rest))
    made = planned(FLEET, node, on("a"))
    assert told(made, UntaintNode) == ["a"]
    left = {a.key for a in made.actions if isinstance(a, AnnotateNode) and a.value is None}
    assert DRAIN_STARTED in left
    assert (INTERRUPTION in left) is annotated


def test_node_with_nothing_but_the_taint_of_an_interruption_is_given_back() -> None:
    """What lost its other marks, with a fleet that left the config for once, stayed closed."""
    made = planned(FLEET, make_node("a", FLEET, taints=(TAINT,)), on("a"))
    assert told(made, UntaintNode) == ["a"]
    node = noticed("a", 50, taints=(TAINT,))
    assert told(planned(FLEET, node, on("a")), UntaintNode) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "terminate",
        "terminate/",
        "terminate/soon",
        "terminate/2026-01-31T12:00:00",
        "explode/2026-01-31T12:00:00Z",
        "terminate/" + "9" * 10_000,
        "terminate/2026-01-31T12:00:00Z/more",
        "terminate/9999-12-31T23:59:59-12:00",
    ],
)
def test_notice_that_cannot_be_read_moves_nothing_and_is_said(text: str) -> None:
    """A typo of an operator, or a hostile kubelet's, would crash the plan of the whole cluster."""
    node = make_node("a", FLEET, annotations=FrozenMap({INTERRUPTION: text}))
    assert read_notice(node) is None
    made = planned(FLEET, node, on("a"))
    assert told(made, TaintNode) + told(made, EvictPod) == []
    assert kept(made)["a"] == "unreadable-notice"


def test_notice_that_is_passed_over_is_said() -> None:
    """The node watch announces it, and an operator would look for a typo in it."""
    text = f"rebalance-recommendation/{rfc3339(ago(-60))}"
    node = make_node("a", FLEET, annotations=FrozenMap({INTERRUPTION: text}))
    made = planned(make_settings(FLEET, drains_for_rebalance=False), node, on("a"))
    assert told(made, TaintNode) + told(made, EvictPod) == []
    assert kept(made)["a"] == "notice-not-acted-on"


@pytest.mark.parametrize("left", [-301, -4 * 86_400, 601, 86_400])
def test_notice_out_of_its_time_moves_nothing(left: float) -> None:
    """A message four days old would empty a node that is well."""
    made = planned(FLEET, noticed("a", left), on("a"))
    assert told(made, TaintNode) + told(made, EvictPod) == []


def test_nothing_is_emptied_while_the_clocks_differ() -> None:
    """By a clock that is an hour off every deadline would be wrong."""
    snapshot = make_snapshot(noticed("a"), on("a"), server_time=ago(3600))
    made = plan(snapshot, make_settings(FLEET))
    assert told(made, EvictPod) + told(made, TaintNode) == []


def test_bare_pods_are_evicted_and_not_bought_for() -> None:
    """Nothing recreates them, so a node for them would stay empty."""
    made = planned(FLEET, noticed("a"), on("a", cpu="3", owner=None))
    assert told(made, EvictPod) == ["on-a"]
    assert targets(made) == []


def test_node_is_not_ended_under_pods_that_run_there_under_another_name() -> None:
    """A renamed kubelet's pods would die minutes before EC2 takes the instance."""
    replaced = {REPLACEMENT_ASKED: rfc3339(ago(30))}
    node = begun("a", annotations=replaced, created_at=ago(60))
    alias = make_node("old-a", FLEET, instance_id=node.instance_id, created_at=ago(9000))
    others: list[Node | Pod] = [make_node("b", FLEET), full("b")]
    alone = planned(FLEET, node, *others, target=3)
    assert told(alone, TerminateInstance) == ["a"]
    made = planned(FLEET, node, alias, *others, on("old-a"), target=3)
    assert "a" not in told(made, TerminateInstance)


def test_plan_says_how_far_interrupted_nodes_are() -> None:
    """How soon they are empty is what an operator wants to see in a graph."""
    nodes = [begun("a"), begun("b"), make_node("c", FLEET)]
    made = planned(FLEET, *nodes, on("b"))
    assert [(n.node, n.empty, n.seconds) for n in made.interrupted] == [
        ("a", True, 30.0),
        ("b", False, 30.0),
    ]
