"""Expired nodes that pods keep for longer than `terminate_after`."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import (
    DRAIN_FAILED,
    DRAIN_STARTED,
    DRAINING_TAINT,
    INTERRUPTION,
    PODS_BLOCK_SINCE,
    AnnotateNode,
    DeletePod,
    EvictPod,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node, Owner, Pod, PodDisruptionBudget, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import BlastRadius, DisruptionBudget
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    NOW,
    ago,
    make_cloud,
    make_fleet,
    make_instance,
    make_node,
    make_settings,
    selecting,
)
from tests.unit.planner.disruption.scale_in.scene import (
    full,
    kept,
    make_scene_fleet,
    on,
    planned,
    told,
)
from tests.unit.planner.placed import drained

DAY = 86_400.0
HOUR = 3_600.0
FLEET = make_scene_fleet(expire_after_seconds=DAY, terminate_after_seconds=2 * HOUR)
PROTECTED = FrozenMap({"fleet-reconciler.io/do-not-disrupt": "true"})


def blocked(seconds: float | None, fleet: FleetSettings = FLEET, **changed: Any) -> Node:
    """An expired node that pods have kept for so long; for None that is not noted."""
    noted = dict(changed.pop("annotations", {}))
    if seconds is not None:
        noted[PODS_BLOCK_SINCE] = rfc3339(ago(seconds))
    return make_node("a", fleet, created_at=ago(2 * DAY), annotations=FrozenMap(noted), **changed)


def clock(made: Plan) -> list[str | None]:
    """What is noted of since when pods keep the node."""
    found = [a for a in made.actions if isinstance(a, AnnotateNode) and a.key == PODS_BLOCK_SINCE]
    return [a.value for a in found]


def guarded(**changed: Any) -> Pod:
    """A pod whose owner does not want it moved."""
    return on("a", annotations=PROTECTED, **changed)


def deleted(made: Plan) -> list[tuple[str, int]]:
    """The pods that are deleted, and their grace."""
    return [(a.pod.name, a.grace_seconds) for a in made.actions if isinstance(a, DeletePod)]


def test_time_begins_when_a_pod_first_keeps_the_node() -> None:
    """A time that begins with the node's age would be over before its turn has come."""
    made = planned(FLEET, blocked(None), make_node("b", FLEET), guarded(), on("b"))
    assert clock(made) == [rfc3339(NOW)]
    assert (drained(made), deleted(made)) == ([], [])


def test_pod_keeps_its_node_until_the_time_is_over() -> None:
    """Its owner has asked for that, and is told how long it will be."""
    made = planned(FLEET, blocked(HOUR), make_node("b", FLEET), guarded(), on("b"))
    assert (clock(made), drained(made), deleted(made)) == ([], [], [])
    (detail,) = [k.detail for k in made.kept if k.node == "a"]
    assert "it is ended anyway in 1h (terminate_after)" in detail


@pytest.mark.parametrize(
    ("pod", "grace"),
    [
        pytest.param(guarded(), 30, id="protected"),
        pytest.param(replace(on("a"), owner=None), 30, id="no controller"),
        pytest.param(
            replace(guarded(), spec=replace(on("a").spec, termination_grace_seconds=3600)),
            3600,
            id="long grace",
        ),
    ],
)
def test_node_is_emptied_when_the_time_is_over(pod: Pod, grace: int) -> None:
    """Otherwise one annotation keeps an image without its fixes in service for good."""
    made = planned(FLEET, blocked(2 * HOUR), make_node("b", FLEET), pod, on("b"))
    assert drained(made) == ["a"]
    ended = {a.pod.name: a.grace_seconds for a in made.actions
             if isinstance(a, EvictPod | DeletePod)}  # fmt: skip
    assert ended == {"on-a": grace}
    assert {a.policy for a in made.actions} == {"expiry"}


def test_budget_is_asked_first_and_then_passed_over() -> None:
    """Whoever a budget lets go leaves by the Eviction API."""
    pods = [on("a", f"p{n}", labels=FrozenMap({"app": "p"})) for n in range(2)]
    free = on("a", "free")
    budget = PodDisruptionBudget(
        namespace="ns", name="b", selector=selecting(app="p"), disruptions_allowed=1
    )
    nodes = [blocked(2 * HOUR), make_node("b", FLEET)]
    made = planned(FLEET, *nodes, *pods, free, budgets=(budget,))
    assert told(made, EvictPod) == ["free", "p0"]
    assert (deleted(made), clock(made)) == ([("p1", 30)], [])
    none = planned(FLEET, *nodes, *pods, free, budgets=(replace(budget, disruptions_allowed=0),))
    assert [name for name, _ in deleted(none)] == ["p0", "p1"]


def test_time_begins_again_when_the_node_could_be_emptied() -> None:
    """What kept it for a moment two days ago is not what keeps it now."""
    made = planned(FLEET, blocked(HOUR), make_node("b", FLEET), on("a"), on("b"))
    assert (drained(made), clock(made)) == (["a"], [None])


CLOSED = replace(FLEET, disruption_budgets=(DisruptionBudget(nodes=0),))


def test_time_stands_still_while_only_a_limit_keeps_the_node() -> None:
    """Pods that allow it by day and a budget that allows it by night kept a node for good."""
    others = (make_node("b", FLEET), on("b"))
    stopped = f"{rfc3339(ago(HOUR))}/{rfc3339(NOW)}"
    assert clock(planned(CLOSED, blocked(HOUR, CLOSED), on("a"), *others)) == [stopped]
    first = make_node("first", FLEET, draining=True, annotations=FrozenMap({
        DRAIN_STARTED: rfc3339(ago(30))}))  # fmt: skip
    turn = planned(FLEET, blocked(HOUR), on("a"), first, on("first"), *others)
    assert (clock(turn), kept(turn)["a"]) == ([stopped], "max-non-empty-at-once")
    still = {PODS_BLOCK_SINCE: f"{rfc3339(ago(10 * HOUR))}/{rfc3339(ago(9.5 * HOUR))}"}
    node = blocked(None, CLOSED, annotations=still)
    assert clock(planned(CLOSED, node, on("a"), *others)) == []
    made = planned(CLOSED, node, guarded(), *others)
    assert clock(made) == [rfc3339(ago(HOUR / 2))]
    (detail,) = [k.detail for k in made.kept if k.node == "a"]
    assert "it is ended anyway in 1h30m (terminate_after)" in detail


@pytest.mark.parametrize(
    ("others", "code"),
    [
        pytest.param(
            [on("a", "young", scheduled_at=ago(58), started_at=ago(57))], "settling", id="settling"
        ),
        pytest.param(
            [make_node("older", FLEET, created_at=ago(3 * DAY)), on("older")],
            "max-non-empty-at-once",
            id="turn",
        ),
        pytest.param([full("b", "3500m")], "replacement", id="place"),
    ],
)
def test_time_stands_still_until_the_node_is_emptied(others: list[Node | Pod], code: str) -> None:
    """Between two Jobs there was always something else that kept it: it was never ended."""
    made = planned(FLEET, blocked(HOUR), make_node("b", FLEET), on("a", cpu="1"), *others)
    assert clock(made) == [f"{rfc3339(ago(HOUR))}/{rfc3339(NOW)}"]
    assert (kept(made)["a"], "a" in drained(made)) == (code, False)


def test_time_begins_again_before_the_pods_are_evicted() -> None:
    """A crash in between left a drain that would delete pods a moment later."""
    made = planned(FLEET, blocked(HOUR), make_node("b", FLEET), on("a"), on("b"))
    kinds = [type(action) for action in made.actions]
    assert kinds == [TaintNode, AnnotateNode, AnnotateNode, EvictPod]


def test_no_end_is_reported_a_node_that_the_blast_radius_keeps() -> None:
    """Its time stands still, and the limit holds after it: it was "ended in 1h" for ever."""
    settings = make_settings(FLEET, blast_radius=BlastRadius(pods=1, percent=False))
    owner = Owner(kind="StatefulSet", name="web", uid="")
    web = [on("a", f"web-{n}", owner=owner) for n in range(2)]
    made = planned(settings, blocked(HOUR), make_node("b", FLEET), *web, on("b"))
    (stays,) = [k for k in made.kept if k.node == "a"]
    assert (stays.code, "terminate_after" in stays.detail) == ("blast-radius", False)


def test_no_time_begins_for_a_limit() -> None:
    """A pod that came when the budget opened would be deleted at once."""
    made = planned(CLOSED, blocked(None, CLOSED), make_node("b", CLOSED), on("a"), on("b"))
    assert clock(made) == []


def test_drains_that_failed_count() -> None:
    """A budget that allows one pod now and then refuses it keeps the node just as well."""
    failed = {DRAIN_FAILED: f"{rfc3339(ago(60))}/1"}
    node = blocked(HOUR, annotations=failed)
    made = planned(FLEET, node, make_node("b", FLEET), on("a"), on("b"))
    assert (clock(made), kept(made)["a"]) == ([], "drain-cool-off")
    earlier = {DRAIN_FAILED: f"{rfc3339(ago(360))}/3"}
    over = blocked(2 * HOUR + 300, annotations=earlier)
    assert drained(planned(FLEET, over, make_node("b", FLEET), on("a"), on("b"))) == ["a"]


def test_next_attempt_does_not_begin_the_time_again() -> None:
    """No rest is as long as such a time: a webhook that denies would keep the node for good."""
    failed = {DRAIN_FAILED: f"{rfc3339(ago(HOUR))}/3"}
    made = planned(FLEET, blocked(HOUR + 300, annotations=failed), make_node("b", FLEET), on("a"))
    assert (drained(made), clock(made)) == (["a"], [])


def test_drain_goes_on_to_its_end() -> None:
    """A crash after the first deletion must not leave the rest, and no pod is deleted twice."""
    taint = Taint(key=DRAINING_TAINT, value="expiry", effect="NoSchedule")
    node = blocked(2 * HOUR, taints=(taint,), annotations={DRAIN_STARTED: rfc3339(ago(600))})
    going = replace(guarded(name="going"), deleting=True)
    made = planned(FLEET, node, make_node("b", FLEET), guarded(), going)
    assert (told(made, EvictPod), deleted(made)) == (["on-a"], [])
    empty = planned(FLEET, node, make_node("b", FLEET), on("b"))
    assert told(empty, TerminateInstance) == ["a"]


@pytest.mark.parametrize(("seconds", "leaves"), [(60, "evicted"), (600, "deleted")])
def test_pod_whose_eviction_is_refused_each_time_is_deleted(seconds: float, leaves: str) -> None:
    """A webhook refused every eviction: the drain never ended, and no other one could begin."""
    taint = Taint(key=DRAINING_TAINT, value="expiry", effect="NoSchedule")
    started = {DRAIN_STARTED: rfc3339(ago(seconds))}
    node = blocked(4 * HOUR, taints=(taint,), annotations=started)
    made = planned(FLEET, node, make_node("b", FLEET), on("a"))
    assert told(made, EvictPod) == (["on-a"] if leaves == "evicted" else [])
    assert deleted(made) == ([("on-a", 30)] if leaves == "deleted" else [])


@pytest.mark.parametrize(("seconds", "given_up"), [(500, False), (600, True)])
def test_overdue_node_whose_kubelet_died_is_left_to_its_replacement(
    seconds: float, given_up: bool
) -> None:
    """The StatefulSet's pod on it was not made again for as long as `terminate_after`."""
    taint = Taint(key=DRAINING_TAINT, value="expiry", effect="NoSchedule")
    started = {DRAIN_STARTED: rfc3339(ago(700))}
    silent: dict[str, Any] = {"ready": False, "ready_changed_at": ago(seconds)}
    node = blocked(4 * HOUR, taints=(taint,), annotations=started, **silent)
    ending = on("a", owner="StatefulSet", deleting=True, deletion_at=ago(600))
    made = planned(FLEET, node, make_node("b", FLEET), ending)
    assert told(made, UntaintNode) == (["a"] if given_up else [])
    assert told(made, TerminateInstance) == []
    after = planned(FLEET, blocked(4 * HOUR, **silent), make_node("b", FLEET), ending)
    assert told(after, TerminateInstance) == (["a"] if given_up else [])


def test_overdue_node_with_pods_to_delete_is_emptied_though_it_is_silent() -> None:
    """What is left there has to be deleted first, so that its controller makes it elsewhere."""
    taint = Taint(key=DRAINING_TAINT, value="expiry", effect="NoSchedule")
    started = {DRAIN_STARTED: rfc3339(ago(700))}
    silent: dict[str, Any] = {"ready": False, "ready_changed_at": ago(900)}
    node = blocked(4 * HOUR, taints=(taint,), annotations=started, **silent)
    made = planned(FLEET, node, make_node("b", FLEET), guarded())
    assert (told(made, UntaintNode), deleted(made)) == ([], [("on-a", 30)])


def test_time_goes_on_while_a_drain_failed_within_it() -> None:
    """Drains that are tried once a day failed for ever: each forgot that the last one had."""
    fleet = replace(FLEET, terminate_after_seconds=2 * DAY)
    failed = {DRAIN_FAILED: f"{rfc3339(ago(20 * HOUR))}/1"}
    node = blocked(DAY, fleet, annotations=failed)
    made = planned(fleet, node, make_node("b", fleet), on("a"), on("b"))
    assert clock(made) == []


@pytest.mark.parametrize("ago_seconds", [2 * HOUR - 5, 2 * HOUR + 5, 20 * HOUR])
def test_time_that_began_with_a_failed_drain_goes_on_until_the_next_one(ago_seconds: float) -> None:
    """The failure was forgotten a moment before the time was over, or while a window was closed."""
    fleet = replace(FLEET, disruption_budgets=(DisruptionBudget(nodes=0),))
    failed = {DRAIN_FAILED: f"{rfc3339(ago(ago_seconds + 10))}/1"}
    node = blocked(ago_seconds, fleet, annotations=failed)
    made = planned(fleet, node, make_node("b", fleet), on("a"), on("b"))
    assert clock(made) == []


def test_failure_of_long_ago_begins_no_time() -> None:
    """A drain for another reason failed days before the node expired."""
    failed = {DRAIN_FAILED: f"{rfc3339(ago(7 * HOUR))}/1"}
    for seconds, noted in ((None, []), (30, [None])):
        node = blocked(seconds, annotations=failed)
        made = planned(FLEET, node, make_node("b", FLEET), on("a"), on("b"))
        assert (drained(made), clock(made)) == (["a"], noted)


def test_drain_that_failed_before_the_node_expired_begins_no_time() -> None:
    """Scale-in's drain failed hours before; three days later a pod was deleted against its PDB."""
    for expired, noted, cleared in ((60, None, []), (72 * HOUR, 72 * HOUR - 60, [None])):
        failed = {DRAIN_FAILED: f"{rfc3339(ago(expired + 5 * HOUR))}/1"}
        node = replace(blocked(noted, annotations=failed), created_at=ago(DAY + expired))
        made = planned(FLEET, node, make_node("b", FLEET), on("a"), on("b"))
        assert clock(made) == cleared


def test_pods_have_a_place_first() -> None:
    """The end of a node is no outage: what takes its pods is there before."""
    crowd = replace(full("a", "3500m"), annotations=PROTECTED)
    made = planned(FLEET, blocked(2 * HOUR), make_node("b", FLEET), crowd, full("b"))
    assert (drained(made), deleted(made)) == ([], [])
    assert kept(made)["a"] == "replacement"


@pytest.mark.parametrize(
    ("fleet", "node"),
    [
        pytest.param(replace(FLEET, terminate_after_seconds=None), None, id="no limit"),
        pytest.param(replace(FLEET, expire_after_seconds=7 * DAY), None, id="not expired"),
        pytest.param(FLEET, PROTECTED, id="node itself is protected"),
        pytest.param(
            replace(FLEET, disruption_budgets=(DisruptionBudget(nodes=0),)), None, id="budget"
        ),
    ],
)
def test_nothing_is_deleted_otherwise(
    fleet: FleetSettings, node: FrozenMap[str, str] | None
) -> None:
    """The time that is noted on a node says nothing by itself."""
    a = blocked(9 * HOUR, fleet, annotations=node or {})
    made = planned(fleet, a, make_node("b", fleet), guarded(), on("b"))
    assert (drained(made), deleted(made)) == ([], [])


@pytest.mark.parametrize("text", ["soon", "", "9999-01-01T00:00:00Z"])
def test_unreadable_or_future_time_begins_now(text: str) -> None:
    """A tenant's or a clock's mistake neither ends a node at once nor keeps it for good."""
    node = blocked(None, annotations={PODS_BLOCK_SINCE: text})
    made = planned(FLEET, node, make_node("b", FLEET), guarded(), on("b"))
    assert (clock(made), deleted(made)) == ([rfc3339(NOW)], [])


def test_time_begins_again_when_the_node_stood_empty() -> None:
    """A Job that started hours after the last one had ended was evicted at once."""
    fleet = replace(FLEET, disruption_budgets=(DisruptionBudget(nodes=0),))
    made = planned(fleet, blocked(3 * HOUR, fleet), make_node("b", fleet), on("b"))
    assert clock(made) == [None]


@pytest.mark.parametrize(
    "notice",
    [
        f"rebalance-recommendation/{rfc3339(ago(300))}",
        f"scheduled-change/{rfc3339(ago(-5 * DAY))}",
    ],
)
@pytest.mark.parametrize("draining", [False, True])
def test_time_is_over_whatever_else_the_node_is_to_be_replaced_for(
    notice: str, draining: bool
) -> None:
    """A recommendation of EC2 let one annotation keep the node for good, and gave drains back."""
    taint = Taint(key=DRAINING_TAINT, value="expiry", effect="NoSchedule")
    noted = {INTERRUPTION: notice}
    if draining:
        noted[DRAIN_STARTED] = rfc3339(ago(30))
    node = blocked(2 * HOUR, annotations=noted, taints=(taint,) if draining else ())
    made = planned(FLEET, node, make_node("b", FLEET), guarded(), on("b"))
    assert drained(made) == ([] if draining else ["a"])
    assert (told(made, EvictPod), told(made, UntaintNode)) == (["on-a"], [])
    assert clock(made) == []


@pytest.mark.parametrize("consolidation", [False, True])
def test_time_is_forgotten_when_the_node_is_not_to_be_replaced_any_more(
    consolidation: bool,
) -> None:
    """With expiry switched on again weeks later, pods were evicted in the first plan."""
    fleet = replace(FLEET, expire_after_seconds=None)
    settings = replace(make_settings(fleet), consolidation=consolidation)
    made = planned(settings, blocked(30 * DAY, fleet), full("a"))
    assert clock(made) == [None]


@pytest.mark.parametrize(("seconds", "given_back"), [(600, []), (3 * HOUR, ["a"])])
@pytest.mark.parametrize("pods", [[on("a", deleting=True, deletion_at=ago(-3000))], []])
def test_overdue_node_is_not_given_back_for_a_moment_in_which_nothing_may_be_ended(
    seconds: float, given_back: list[str], pods: list[Pod]
) -> None:
    """AWS throttled one question, and a node whose pods were deleted took new ones."""
    group = replace(FLEET, provider="asg", auto_scaling_group="workers")
    started = {DRAIN_STARTED: rfc3339(ago(seconds))}
    taint = Taint(key=DRAINING_TAINT, value="expiry", effect="NoSchedule")
    nodes = [blocked(6 * HOUR, group, annotations=started, taints=(taint,)), make_node("b", group)]
    live = make_fleet(group, 2, id=FleetId("workers"), removals_halted="AWS throttles the question")
    cloud = make_cloud(live, instances=[make_instance(node, live) for node in nodes])
    made = planned(group, *nodes, *pods, on("b"), cloud=cloud, relists=2)
    assert told(made, UntaintNode) == given_back
    assert given_back or kept(made)["a"] == "fleet-busy"
