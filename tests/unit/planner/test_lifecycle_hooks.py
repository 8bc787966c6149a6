"""Instances that an Auto Scaling group ends while a lifecycle hook of ours holds them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.actions import DRAINING_TAINT, EvictPod, TaintNode, TerminateInstance
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.ids import InstanceId, NodeName
from reconciler.model.notices import LifecycleAction, MessageId, Notice, emptied_messages
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from tests.builders import (
    AWAY,
    HOME,
    NOW,
    idle,
    kept_proof,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

SMALL = make_fleet_settings(provider="asg", auto_scaling_group="workers", scale_in=idle(60))
GROUP = replace(make_fleet(SMALL, 1, id="workers"), name="workers")

HOOK = LifecycleAction(region=HOME, group="workers", name="drain", token="0" * 36)


def held(*, pods: bool, hook: LifecycleAction | None = HOOK) -> Snapshot:
    """A node whose group ends it, while a hook waits for us; its message is in the queue."""
    node, other = make_node("a", SMALL), make_node("b", SMALL)
    instances = [make_instance(node, GROUP, leaving=True), make_instance(other, GROUP)]
    assert node.instance_id is not None
    notice = Notice(
        message=MessageId("m"),
        kind="lifecycle-action",
        instance=InstanceId(node.instance_id),
        at=NOW - timedelta(hours=1),
        hook=hook,
    )
    cloud = make_cloud(GROUP, instances=instances)
    work = [make_pod("web", node="a")] if pods else []
    return replace(make_snapshot(node, other, *work, cloud=cloud), notices=(notice,))


def test_node_that_its_group_ends_is_emptied_and_counts_for_nothing() -> None:
    """Its pods would end with it, or its place would be bought twice."""
    made = plan(held(pods=True), make_settings(SMALL))
    assert [a.pod.name for a in made.actions if isinstance(a, EvictPod)] == ["web"]
    assert [a.node for a in made.actions if isinstance(a, TaintNode)] == ["a"]
    assert [(f.joined, f.current, f.target) for f in made.fleets] == [(1, 1, 1)]
    assert [a for a in made.actions if isinstance(a, TerminateInstance)] == []


@pytest.mark.parametrize("reason", ["scale-in", "rebalance"])
def test_node_whose_drain_its_group_overtakes_is_emptied_all_the_same(reason: str) -> None:
    """The group may end the node while we drain it: its pods would end with the machine."""
    snapshot = held(pods=True)
    taint = Taint(key=DRAINING_TAINT, value=reason, effect="NoSchedule")
    nodes = tuple(
        replace(node, taints=(taint,)) if node.name == "a" else node
        for node in snapshot.cluster.nodes
    )
    snapshot = replace(snapshot, cluster=replace(snapshot.cluster, nodes=nodes))
    made = plan(snapshot, make_settings(SMALL))
    assert [a.pod.name for a in made.actions if isinstance(a, EvictPod)] == ["web"]


@pytest.mark.parametrize(
    ("snapshot", "result"),
    [
        (held(pods=True), "waiting"),
        (held(pods=False), "acted"),
        (held(pods=False, hook=replace(HOOK, group="another")), "ignored"),
        (held(pods=False, hook=None), "ignored"),
    ],
    ids=["pods-left", "empty", "of-another-group", "without-a-hook"],
)
def test_hook_goes_on_when_the_node_is_empty(snapshot: Snapshot, result: str) -> None:
    """Too early it ends running pods; never, it holds an instance for two days."""
    made = plan(snapshot, make_settings(SMALL))
    assert [notice.result for notice in made.notices] == [result]
    assert emptied_messages(made.notices) == ({"m"} if result == "acted" else set())


def test_hook_of_an_instance_that_is_not_shown_is_left_alone() -> None:
    """EventBridge sends the hooks of every group: that of a stranger would go on too early."""
    snapshot = held(pods=False)
    assert snapshot.cloud is not None
    (notice,) = snapshot.notices
    stranger = replace(notice, instance=InstanceId("i-stranger"), at=NOW)
    cloud = replace(snapshot.cloud, silent=frozenset({AWAY}))
    made = plan(replace(snapshot, cloud=cloud, notices=(stranger,)), make_settings(SMALL))
    assert [notice_outcome.result for notice_outcome in made.notices] == ["waiting"]
    assert emptied_messages(made.notices) == set()
    ours = replace(snapshot.cloud, instances=(), silent=frozenset({HOME}))
    snapshot = replace(snapshot, cloud=ours, notices=(replace(notice, at=NOW),))
    made = plan(snapshot, make_settings(SMALL))
    assert [notice_outcome.result for notice_outcome in made.notices] == ["acted"]


ADDRESS = "ip-10-0-0-7.us-west-2.compute.internal"
ANONYMOUS = make_node(ADDRESS, SMALL, instance_id=None)
"""The held instance as a kubelet without a cloud provider registers it."""


def shown(*objects: Node | Pod, b: bool = True, **changed: Any) -> Snapshot:
    """The held instance as `objects` show it, beside node b; two lists agree unless stated."""
    snapshot = held(pods=False)
    assert snapshot.cloud is not None
    first, *rest = snapshot.cloud.instances
    named = replace(first, private_dns_name=ADDRESS)
    cloud = replace(snapshot.cloud, instances=(named, *rest))
    nodes = [node for node in snapshot.cluster.nodes if b and node.name == "b"]
    cluster = {"relists": 2, **changed}
    return replace(
        make_snapshot(*nodes, *objects, cloud=cloud, **cluster), notices=snapshot.notices
    )


def result_of(snapshot: Snapshot) -> str:
    """What the plan says of the only notice; `acted` completes the hook."""
    made = plan(snapshot, make_settings(SMALL))
    (outcome,) = made.notices
    assert bool(emptied_messages(made.notices)) == (outcome.result == "acted")
    return outcome.result


@pytest.mark.parametrize(
    ("snapshot", "result"),
    [
        (shown(), "acted"),
        (shown(relists=1), "waiting"),
        (shown(make_pod("job", node="a", owner="Job")), "waiting"),
        (shown(make_pod("job", node=ADDRESS, owner="Job", deleting=True)), "waiting"),
        (shown(make_node("c", instance_id=None, unreadable=True)), "waiting"),
        (shown(b=False), "waiting"),
        (shown(ANONYMOUS, b=False), "waiting"),
        (shown(b=False, **kept_proof(GROUP)), "acted"),
        (shown(b=False, relists=1, **kept_proof(GROUP)), "waiting"),
    ],
    ids=[
        "it has not joined",
        "first list",
        "a pod runs on a node that is not listed",
        "a pod ends on it",
        "a node cannot be read",
        "nothing proves the cluster",
        "a name alone proves nothing",
        "every node is gone",
        "the first list is empty",
    ],
)
def test_hook_of_an_instance_without_a_listed_node_goes_on_when_nothing_can_run_there(
    snapshot: Snapshot, result: str
) -> None:
    """With another cluster's kubeconfig, or a hole in the list, a running Job would end with it."""
    assert result_of(snapshot) == result


@pytest.mark.parametrize("pods", [True, False])
def test_hook_of_a_node_without_a_provider_id_waits_for_its_pods(pods: bool) -> None:
    """Its node is known by the private name alone."""
    work = [make_pod("web", node=ADDRESS)] if pods else []
    assert result_of(shown(ANONYMOUS, *work)) == ("waiting" if pods else "acted")


@pytest.mark.parametrize("other_name", ["0-old", "z-old"])
def test_hook_waits_for_the_pods_of_every_node_of_the_instance(other_name: str) -> None:
    """A renamed kubelet leaves its old Node behind: whichever came last was asked for its pods."""
    machine = make_node("a", SMALL)
    old = replace(machine, name=NodeName(other_name), uid="uid-old", ready=False)
    pod = make_pod("job", node="a", owner="Job")
    nodes = sorted((machine, old), key=lambda node: node.name)
    assert result_of(shown(*nodes, pod)) == "waiting"
    assert result_of(shown(*nodes)) == "acted"


def test_hook_of_a_group_that_the_config_does_not_name_is_left_to_others() -> None:
    """Another program drains its nodes, and completes the action when it has finished."""
    other = make_fleet_settings("large", provider="asg", auto_scaling_group="others")
    made = plan(held(pods=False), make_settings(other))
    assert [each.result for each in made.notices] == ["not-ours"]
    assert emptied_messages(made.notices) == frozenset()
