"""Notices of the interruption queue: written onto their node, acted on, and done with."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    DRAINING_TAINT,
    INTERRUPTION,
    EvictPod,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId
from reconciler.model.notices import Notice, NoticeKind, settled_messages
from reconciler.model.snapshot import CloudState
from reconciler.model.text import rfc3339
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.builders import (
    AWAY,
    HOME,
    NOW,
    ago,
    make_instance,
    make_node,
    make_settings,
)
from tests.unit.planner.disruption.interrupted_nodes import FLEET, begun, noticed, targets
from tests.unit.planner.disruption.queued_notices import (
    change,
    changed_node,
    recommended,
    results,
    seen,
    spot,
    withdrawn,
    written,
)
from tests.unit.planner.disruption.scale_in.scene import full, on, told

SETTINGS = make_settings(FLEET)
PASSED_OVER = make_settings(FLEET, drains_for_rebalance=False)


def test_notice_is_written_onto_its_node_and_acted_on_in_the_same_plan() -> None:
    """A message that waits for a second plan costs its pods seconds of their two minutes."""
    snapshot = seen(
        make_node("a", FLEET), make_node("b", FLEET), full("a"), full("b"), notices=(spot("a"),)
    )
    made = plan(snapshot, SETTINGS)
    assert written(made) == {"a": f"terminate/{rfc3339(ago(-110))}"}
    assert [action.node for action in made.actions if isinstance(action, TaintNode)] == ["a"]
    assert targets(made) == [(2, 3)]
    assert results(made) == ["waiting"]


def test_message_is_done_when_a_later_snapshot_shows_its_effect() -> None:
    """Deleted before that, a crash in between would lose the notice."""
    notice = spot("a", 60)
    made = plan(seen(begun("a"), full("a"), notices=(notice,)), SETTINGS)
    assert results(made) == ["acted"]
    assert settled_messages(made.notices) == {"m-1"}
    assert written(made) == {}
    annotated = seen(noticed("a", 60), full("a"), notices=(notice,))
    assert results(plan(annotated, SETTINGS)) == ["waiting"]


@pytest.mark.parametrize(("first", "second"), [(60, 110), (110, 60)])
def test_earlier_of_two_notices_holds(first: float, second: float) -> None:
    """A message may come late or twice: it must not put the end off."""
    notices = (spot("a", first), spot("a", second, "m-2"))
    assert written(plan(seen(make_node("a", FLEET), notices=notices), SETTINGS)) == {
        "a": f"terminate/{rfc3339(ago(-60))}"
    }
    on_node = plan(seen(begun("a", first), notices=(spot("a", second),)), SETTINGS)
    assert written(on_node) == ({"a": f"terminate/{rfc3339(ago(-60))}"} if second < first else {})


def test_annotation_that_nobody_can_read_is_replaced() -> None:
    """Whoever wrote it, EC2 takes the instance."""
    strange = make_node("a", FLEET, annotations=FrozenMap({INTERRUPTION: "soon"}))
    made = plan(seen(strange, notices=(spot("a"),)), SETTINGS)
    assert written(made) == {"a": f"terminate/{rfc3339(ago(-110))}"}


@pytest.mark.parametrize(
    ("notice", "result"),
    [
        (spot("b"), "not-ours"),
        (spot("gone"), "instance-gone"),
        (spot("a", -400), "expired"),
        (spot("a", kind="unreadable", at=None), "unreadable"),
        (spot("a", kind="state-change", action="running"), "no-change"),
        (spot("a", kind="state-change", action="stopping"), "waiting"),
        (spot("a", -400, kind="state-change", action="stopping"), "expired"),
        (spot("a", kind="lifecycle-action"), "ignored"),
    ],
    ids=str,
)
def test_notice_that_asks_for_nothing_is_done(notice: Notice, result: str) -> None:
    """A queue that is redelivered, foreign, malformed or days old does no harm and runs empty."""
    nodes = [make_node("a", FLEET), make_node("gone", FLEET)]
    states = {"gone": "shutting-down"}
    made = plan(seen(*nodes, full("a"), notices=(notice,), states=states), SETTINGS)
    assert results(made) == [result]
    assert written(made) == {}


@pytest.mark.parametrize(("seconds", "result"), [(60, "waiting"), (600, "not-ours")])
@pytest.mark.parametrize("notice", [recommended(-60), change(86_400)], ids=["rebalance", "change"])
def test_notice_about_another_programs_node_of_the_cluster_is_none_of_ours(
    notice: Notice, seconds: float, result: str
) -> None:
    """The message was held for days, and no burst of changes was planned for as one meanwhile.

    Karpenter's nodes, and those of managed node groups, carry the tag of the cluster too.
    """
    node = replace(make_node("a", created_at=ago(seconds)), instance_id=InstanceId("i-a"))
    snapshot = seen(make_node("b", FLEET), notices=(notice,))
    assert snapshot.cloud is not None
    other = replace(make_instance(node, snapshot.cloud.fleets[0]), fleet_id=FleetId("fleet-other"))
    cloud = replace(snapshot.cloud, instances=(*snapshot.cloud.instances, other))
    cluster = replace(snapshot.cluster, nodes=(node, *snapshot.cluster.nodes))
    made = plan(replace(snapshot, cloud=cloud, cluster=cluster), SETTINGS)
    assert (results(made), written(made)) == ([result], {})


@pytest.mark.parametrize(("seconds", "result"), [(60, "waiting"), (600, "not-ours")])
def test_notice_about_a_node_that_is_newer_than_the_answer_of_ec2_waits(
    seconds: float, result: str
) -> None:
    """A group at rest is read every two minutes: the pods of a new node got no two minutes."""
    node = make_node("b", FLEET, created_at=ago(seconds))
    made = seen(node, full("b"), notices=(spot("b"),))
    assert made.cloud is not None
    without = replace(made, cloud=replace(made.cloud, instances=()))
    assert results(plan(without, SETTINGS)) == [result]


@pytest.mark.parametrize("left_seconds", [-60, -600, -86_400])
def test_recommendation_is_done_only_when_a_later_snapshot_shows_it(left_seconds: float) -> None:
    """One older than five minutes was deleted before its node carried it, and lost by a crash."""
    notice = recommended(left_seconds)
    made = plan(seen(make_node("a", FLEET), full("a"), notices=(notice,)), SETTINGS)
    told = written(made)["a"]
    assert told == f"rebalance-recommendation/{rfc3339(ago(-left_seconds))}"
    assert results(made) == ["waiting"]
    carried = make_node("a", FLEET, annotations=FrozenMap({INTERRUPTION: told}))
    later = plan(seen(carried, full("a"), notices=(notice,)), SETTINGS)
    assert (results(later), written(later)) == (["acted"], {})


@pytest.mark.parametrize(
    ("annotation", "result"),
    [
        (f"terminate/{rfc3339(ago(-3600))}", "acted"),
        (f"scheduled-change/{rfc3339(ago(3600))}", "waiting"),
        (f"rebalance-recommendation/{rfc3339(ago(900))}", "acted"),
        (f"rebalance-recommendation/{rfc3339(ago(300))}", "waiting"),
    ],
)
def test_recommendation_is_done_when_its_node_carries_what_outranks_it(
    annotation: str, result: str
) -> None:
    """It is never written then, and its message would stay for ever."""
    node = make_node("a", FLEET, annotations=FrozenMap({INTERRUPTION: annotation}))
    made = plan(seen(node, full("a"), notices=(recommended(-600),)), SETTINGS)
    assert results(made) == [result]
    assert bool(written(made)) == (result == "waiting")


def test_withdrawn_change_is_taken_off_its_node_and_done_when_that_is_seen() -> None:
    """Maintenance that AWS had cancelled replaced the node all the same."""
    notice = withdrawn(86_400)
    made = plan(seen(changed_node(86_400), full("a"), notices=(notice,)), SETTINGS)
    assert (written(made), results(made)) == ({"a": None}, ["waiting"])
    assert [action for action in made.actions if isinstance(action, TaintNode)] == []
    later = plan(seen(make_node("a", FLEET), full("a"), notices=(notice,)), SETTINGS)
    assert (written(later), results(later)) == ({}, ["acted"])


def test_drain_for_a_change_ends_when_it_is_withdrawn() -> None:
    """Within ten minutes of the change its pods are evicted, whatever limits say."""
    node = begun("a", 300)
    text = f"scheduled-change/{rfc3339(ago(-300))}"
    node = replace(node, annotations=FrozenMap({**node.annotations, INTERRUPTION: text}))
    made = plan(seen(node, full("a"), notices=(withdrawn(300),)), SETTINGS)
    assert written(made) == {"a": None}
    assert [action.node for action in made.actions if isinstance(action, UntaintNode)] == ["a"]
    assert [action for action in made.actions if isinstance(action, EvictPod)] == []


def leaving(node: Node) -> Node:
    """The node while it is drained gracefully for what EC2 announced."""
    taint = Taint(key=DRAINING_TAINT, value="rebalance", effect="NoSchedule")
    started = {**node.annotations, DRAIN_STARTED: rfc3339(ago(60))}
    return replace(node, taints=(taint,), annotations=FrozenMap(started))


RECOMMENDED = f"rebalance-recommendation/{rfc3339(ago(3 * 86_400))}"


@pytest.mark.parametrize("pods", [[on("a"), on("b")], [on("b")]], ids=["pods", "empty"])
@pytest.mark.parametrize(
    ("node", "notices", "settings", "given_back"),
    [
        (changed_node(86_400), (withdrawn(86_400),), SETTINGS, True),
        (make_node("a", FLEET), (withdrawn(86_400),), SETTINGS, True),
        (changed_node(86_400), (), SETTINGS, False),
        (changed_node(86_400), (withdrawn(7200),), SETTINGS, False),
        (make_node("a", FLEET, annotations={INTERRUPTION: RECOMMENDED}), (), SETTINGS, False),
        (make_node("a", FLEET, annotations={INTERRUPTION: RECOMMENDED}), (), PASSED_OVER, True),
        (make_node("a", FLEET), (), SETTINGS, True),
        (make_node("a", FLEET), (change(86_400),), SETTINGS, False),
    ],
    ids=[
        "withdrawn",
        "withdrawn a plan ago",
        "announced",
        "another is withdrawn",
        "recommended days ago",
        "recommendations are passed over",
        "taken off the node",
        "not written yet",
    ],
)
def test_graceful_drain_goes_on_while_a_notice_asks_for_it(
    node: Node,
    notices: tuple[Notice, ...],
    settings: PlannerSettings,
    given_back: bool,
    pods: list[Pod],
) -> None:
    """A node was emptied and ended for maintenance that AWS Health had cancelled."""
    snapshot = seen(leaving(node), make_node("b", FLEET), *pods, notices=notices)
    made = plan(snapshot, settings)
    assert told(made, UntaintNode) == (["a"] if given_back else [])
    goes_on = told(made, EvictPod) + told(made, TerminateInstance)
    assert bool(goes_on) != given_back


def test_withdrawal_takes_back_the_announcement_that_came_with_it_and_no_other() -> None:
    """Both may be read from the queue at once; another change of the instance still comes."""
    both = (change(86_400), withdrawn(86_400))
    made = plan(seen(make_node("a", FLEET), full("a"), notices=both), SETTINGS)
    assert written(made) == {}
    assert sorted(results(made)) == ["acted", "no-change"]
    assert settled_messages(made.notices) == {"m-1", "m-2"}
    other = plan(seen(changed_node(7200), full("a"), notices=(withdrawn(86_400),)), SETTINGS)
    assert (written(other), results(other)) == ({}, ["acted"])


@pytest.mark.parametrize(
    "cloud",
    [
        CloudState(instances_known=False),
        CloudState(instances_known=True, regions=frozenset({HOME}), silent=frozenset({AWAY})),
    ],
    ids=["unknown", "silent"],
)
def test_notice_stays_while_ec2_does_not_show_all_instances(cloud: CloudState) -> None:
    """It may be of an instance of the region that does not answer."""
    snapshot = seen(make_node("a"), notices=(spot("elsewhere"),), cloud=cloud)
    assert results(plan(snapshot, SETTINGS)) == ["waiting"]
    assert results(plan(replace(snapshot, at=NOW + timedelta(minutes=10)), SETTINGS)) == ["expired"]


def test_message_about_several_instances_is_done_with_the_last() -> None:
    """Deleted with the first, the others would be forgotten by a restart."""
    kinds: list[NoticeKind] = ["unreadable", "spot-interruption"]
    notices = tuple(spot("a", 60, kind=kind) for kind in kinds)
    made = plan(seen(make_node("a", FLEET), full("a"), notices=notices), SETTINGS)
    assert settled_messages(made.notices) == set()


def test_nothing_is_done_while_nothing_proves_the_cluster() -> None:
    """A wrong kube-context must not empty the nodes of another cluster, by a notice either."""
    node = make_node("a", FLEET)
    other = replace(make_node("b", FLEET), instance_id=InstanceId("i-other"))
    snapshot = seen(node, full("a"), notices=(spot("a"),))
    assert snapshot.cloud is not None
    away = make_instance(other, snapshot.cloud.fleets[0])
    foreign = replace(snapshot, cloud=replace(snapshot.cloud, instances=(away,)))
    made = plan(foreign, SETTINGS)
    assert written(made) == {}
