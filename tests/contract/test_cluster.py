"""What every Cluster promises; a difference between the twins is a bug in one of them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.model.actions import DRAINING_TAINT, FLEET_STATE, LAST_DRAIN, UNNEEDED_SINCE
from reconciler.model.cluster import Taint
from reconciler.model.errors import NotFound, Refused
from reconciler.model.ids import InstanceId, NodeName, PodKey, Region
from reconciler.model.saved_state import SavedFleetState
from reconciler.records.kubernetes import encode_fleet_state
from tests.contract.cluster_worlds import WORLDS, ClusterWorld

NODE = NodeName("node-a")
NOBODY = NodeName("node-gone")
DRAINING = Taint(key=DRAINING_TAINT, value="scale-in", effect="NoSchedule")
LABELS = {"app": "web"}


@pytest.fixture(params=WORLDS, ids=lambda world: world.__name__)
def world(request: pytest.FixtureRequest) -> Iterator[ClusterWorld]:
    """A cluster with one node."""
    made: ClusterWorld = request.param()
    try:
        made.add_node(NODE)
        yield made
    finally:
        made.close()


def taints(world: ClusterWorld) -> set[str]:
    """The taint keys of the node, by observation."""
    return {taint.key for node in world.port.observe().nodes for taint in node.taints}


def test_new_pod_ends_the_wait_and_is_observed(world: ClusterWorld) -> None:
    """A wait that sleeps through a pending pod costs the whole reaction time."""
    world.port.observe()
    world.add_pod("web-1", LABELS)
    assert world.port.wait_for_change(60)
    state = world.until(lambda s: any(pod.ready for pod in s.pods))
    assert [(pod.key.name, pod.node_name) for pod in state.pods] == [("web-1", NODE)]
    assert state.pods[0].spec.requests == {"cpu": 1000, "pods": 1}


def test_change_that_was_observed_is_acknowledged_once(world: ClusterWorld) -> None:
    """How long changes wait for their cycle would not be measured, or twice."""
    world.until(lambda _: not world.port.wait_for_change(0.3))
    world.port.acknowledge()
    world.add_pod("web-1", LABELS)
    assert world.port.wait_for_change(60)
    assert world.port.acknowledge() == (), "no observation has seen it"
    world.port.observe()
    (handled, *_) = world.port.acknowledge()
    assert handled.source
    assert 0 <= handled.seconds < 60


def test_wait_without_a_change_runs_out(world: ClusterWorld) -> None:
    """A wait that always returns at once makes the loop spin."""
    world.bound_pod()
    world.until(lambda _: not world.port.wait_for_change(0.3))


def test_taint_is_put_once_and_leaves_the_others(world: ClusterWorld) -> None:
    """A lost foreign taint lets pods onto a node that its owner keeps free."""
    foreign = Taint(key="example.org/own", effect="NoSchedule")
    assert world.port.taint_node(NODE, foreign)
    assert world.port.taint_node(NODE, DRAINING)
    assert not world.port.taint_node(NODE, DRAINING)
    world.until(lambda _: taints(world) == {DRAINING.key, foreign.key})
    assert world.port.untaint_node(NODE, DRAINING.key)
    assert not world.port.untaint_node(NODE, DRAINING.key)
    world.until(lambda _: taints(world) == {foreign.key})


def test_taint_with_another_value_replaces_ours(world: ClusterWorld) -> None:
    """The API server refuses two taints of one key and effect."""
    other = replace(DRAINING, value="expiry")
    assert world.port.taint_node(NODE, DRAINING)
    assert world.port.taint_node(NODE, other)
    world.until(lambda s: s.nodes[0].taints == (other,))


def test_node_that_is_gone_is_not_found(world: ClusterWorld) -> None:
    """The executor must tell a vanished node from a failure."""
    with pytest.raises(NotFound):
        world.port.taint_node(NOBODY, DRAINING)
    with pytest.raises(NotFound):
        world.port.untaint_node(NOBODY, DRAINING.key)
    with pytest.raises(NotFound):
        world.port.annotate_node(NOBODY, {UNNEEDED_SINCE: "x"})
    assert not world.port.delete_node(NOBODY, "")


def test_annotations_are_set_and_removed_one_by_one(world: ClusterWorld) -> None:
    """A timer that cannot be reset removes a node in use."""
    world.port.annotate_node(NODE, {UNNEEDED_SINCE: "2026-01-31T12:00:00Z"})
    world.port.annotate_node(NODE, {LAST_DRAIN: "x"})
    world.until(lambda s: UNNEEDED_SINCE in s.nodes[0].annotations)
    world.port.annotate_node(NODE, {UNNEEDED_SINCE: None})
    world.until(lambda s: s.nodes[0].annotations == {LAST_DRAIN: "x"})


def test_evicted_pod_goes_and_a_second_eviction_finds_nothing(world: ClusterWorld) -> None:
    """A repeated plan must not fail on what it has already done."""
    pod = world.bound_pod()
    assert world.port.evict_pod(pod, 5)
    world.until(lambda s: not s.pods)
    assert not world.port.evict_pod(pod, 5)
    assert not world.port.delete_pod(pod, 5)


def test_pod_of_the_same_name_but_another_uid_is_left_alone(world: ClusterWorld) -> None:
    """The replacement of an evicted StatefulSet pod would be killed in its place."""
    earlier = replace(world.bound_pod(), uid="11111111-2222-3333-4444-555555555555")
    assert not world.port.evict_pod(earlier, 5)
    assert not world.port.delete_pod(earlier, 5)
    world.port.wait_for_change(0.3)
    assert [pod.deleting for pod in world.port.observe().pods] == [False]


def test_budget_refuses_eviction_and_deletion_passes_it(world: ClusterWorld) -> None:
    """An application would lose its last replica to a voluntary move."""
    pod = world.bound_pod(labels=LABELS)
    world.add_budget("guard", LABELS, 1)
    world.until(lambda s: s.budgets[0].current_healthy == 1)
    with pytest.raises(Refused):
        world.port.evict_pod(pod, 5)
    assert world.port.delete_pod(pod, 0)
    world.until(lambda s: not s.pods)


def test_two_budgets_over_one_pod_refuse(world: ClusterWorld) -> None:
    """The Eviction API serves no pod with two budgets: that is a no, not a failure."""
    pod = world.bound_pod(labels=LABELS)
    world.add_budget("one", LABELS, 0)
    world.add_budget("two", LABELS, 0)
    with pytest.raises(Refused):
        world.port.evict_pod(pod, 5)


def test_only_pods_that_keep_a_node_are_counted(world: ClusterWorld) -> None:
    """The last check before an instance ends must see exactly what would be lost."""
    pod = world.bound_pod("web-1")
    world.add_pod("mirror", {"app": "mirror"}, mirror=True)
    world.add_daemon("agent")
    world.until(lambda s: sum(each.ready for each in s.pods) == 3)
    assert world.port.counted_pods_on(NODE) == (pod,)
    assert world.port.counted_pods_on(NOBODY) == ()


def test_instance_that_joined_is_known_by_its_provider_id(world: ClusterWorld) -> None:
    """A machine at work would be ended as one that never became a node."""
    here = InstanceId("i-0000000000000000a")
    world.add_node("node-b", here)
    assert here in {node.instance_id for node in world.port.nodes()}


def test_deleted_node_is_gone(world: ClusterWorld) -> None:
    """A Node object without an instance attracts pods that never start."""
    (node,) = world.port.nodes()
    assert not world.port.delete_node(NODE, "another")
    assert world.port.delete_node(NODE, node.uid)
    world.until(lambda s: not s.nodes)
    assert not world.port.delete_node(NODE, node.uid)


def test_lease_remembers_and_forgets(world: ClusterWorld) -> None:
    """A restart would repeat a drain before its pause is over."""
    saved = SavedFleetState(fleet="primary-small", region=Region("us-west-2"), failures=2)
    world.port.remember({LAST_DRAIN: "2026-01-31T12:00:00Z"})
    world.port.remember({FLEET_STATE: encode_fleet_state([saved])})
    state = world.until(lambda s: s.fleet_states == (saved,))
    assert state.last_drain_at == datetime(2026, 1, 31, 12, tzinfo=UTC)
    world.port.remember({LAST_DRAIN: None})
    world.until(lambda s: s.last_drain_at is None and s.fleet_states == (saved,))


def test_wait_ends_when_the_cluster_is_closed(world: ClusterWorld) -> None:
    """A program that was asked to stop would hang until its next cycle."""
    world.port.observe()
    world.port.close()
    assert not world.port.wait_for_change(60)


def test_pod_that_never_was_is_no_error(world: ClusterWorld) -> None:
    """The same as one that is gone."""
    nobody = PodKey(namespace="default", name="nobody", uid="u")
    assert not world.port.evict_pod(nobody, 5)
    assert not world.port.delete_pod(nobody, 5)
