"""The in-memory world behaves as the real one where simulations rely on it."""

from datetime import timedelta

import pytest

from reconciler.adapters.memory import (
    BudgetShape,
    Crash,
    Delays,
    FleetShape,
    MemoryCloud,
    MemoryCluster,
    MemoryWorld,
)
from reconciler.model.cluster import DaemonSet, Owner, Pod, PodAffinityTerm, PodSpec
from reconciler.model.errors import Conflict, OutcomeUnknown, Throttled, Unavailable
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, PodKey, Region
from reconciler.model.selectors import LabelSelector

HOME, AWAY = Region("us-west-2"), Region("us-east-1")


class Arranged:
    """A world with one fleet and a Deployment's pod."""

    def __init__(self, target: int = 1) -> None:
        self.world = MemoryWorld(delays=Delays(launch=10, join=10, terminate=5, node_gone=5))
        self.cluster = MemoryCluster(self.world)
        self.cloud = MemoryCloud(self.world)
        resources = FrozenMap({"cpu": 4000, "pods": 10})
        self.fleet: FleetId = self.world.add_fleet(
            FleetShape(name="primary-small", region=HOME, allocatable=resources), target
        )
        self.pod: PodKey = self.world.add_pod(
            Pod(
                key=PodKey(namespace="web", name="api-1"),
                spec=PodSpec(requests=FrozenMap({"cpu": 1000, "pods": 1})),
                owner=Owner(kind="ReplicaSet", name="api"),
            )
        )


def test_launched_instance_joins_and_the_pod_is_bound() -> None:
    """A simulation in which nothing binds proves nothing."""
    arranged = Arranged()
    arranged.world.advance(15)
    assert arranged.world.nodes() == []
    arranged.world.advance(10)
    (node,) = arranged.world.nodes()
    assert [pod.node_name for pod in arranged.world.pods()] == [node.name]
    assert node.instance_id == arranged.cloud.observe([HOME]).instances[0].id


def test_anti_affinity_keeps_replicas_apart() -> None:
    """Deployments with one replica on a node are what consolidation has to leave room for."""
    world = Arranged(target=2).world
    apart = PodAffinityTerm(
        topology_key="kubernetes.io/hostname",
        selector=LabelSelector(match_labels=FrozenMap({"app": "apart"})),
    )
    spec = PodSpec(
        requests=FrozenMap({"cpu": 100, "pods": 1}),
        node_selector=FrozenMap(),
        pod_anti_affinity=(apart,),
    )
    for number in range(3):
        key = PodKey(namespace="web", name=f"apart-{number}")
        world.add_pod(Pod(key=key, spec=spec, labels=FrozenMap({"app": "apart"})))
    world.advance(30)
    bound = [p.node_name for p in world.pods() if p.key.name.startswith("apart")]
    assert sorted(map(str, bound)) == sorted(["None", *(str(n.name) for n in world.nodes())])


def test_budget_of_the_same_name_is_changed() -> None:
    """A Deployment that shrinks would keep the floor it had."""
    arranged = Arranged()
    arranged.world.advance(30)
    everything = LabelSelector()
    for least in (1, 0):
        shape = BudgetShape(namespace="web", name="b", selector=everything, min_available=least)
        arranged.world.add_budget(shape)
        (budget,) = arranged.cluster.observe().budgets
        assert budget.disruptions_allowed == 1 - least


def test_interrupted_instance_takes_its_node_and_is_replaced() -> None:
    """The fleet keeps its target, and the Deployment its replicas."""
    arranged = Arranged()
    arranged.world.advance(30)
    (node,) = arranged.world.nodes()
    assert node.instance_id is not None
    arranged.world.end_instance(node.instance_id)
    arranged.world.advance(60)
    (successor,) = arranged.world.nodes()
    assert successor.name != node.name
    (pod,) = arranged.world.pods()
    assert (pod.node_name, pod.key == arranged.pod) == (successor.name, False)


def test_fleet_without_capacity_launches_when_there_is_some_again() -> None:
    """Recovery must not need a new target."""
    arranged = Arranged(target=0)
    arranged.world.refuse_launches(arranged.fleet, "InsufficientInstanceCapacity")
    arranged.cloud.set_target_capacity(HOME, arranged.fleet, 2)
    arranged.world.advance(200)
    assert len(arranged.cloud.fleet(HOME, arranged.fleet).launch_errors) > 1
    arranged.world.refuse_launches(arranged.fleet, None)
    arranged.world.advance(60)
    assert len(arranged.world.nodes()) == 2


def test_bad_image_never_joins() -> None:
    """Instances that run and never become nodes are what stuck ones look like."""
    arranged = Arranged(target=0)
    arranged.world.never_join(arranged.fleet)
    arranged.cloud.set_target_capacity(HOME, arranged.fleet, 1)
    arranged.world.advance(3600)
    assert arranged.world.nodes() == []
    assert [instance.state for instance in arranged.cloud.observe([HOME]).instances] == ["running"]


@pytest.mark.parametrize("applied", [False, True])
def test_injected_failure_shows_before_or_after_the_change(applied: bool) -> None:
    """A lost reply and a refused call look alike to the caller and differ in the world."""
    arranged = Arranged(target=0)
    error = OutcomeUnknown("x", "lost") if applied else Throttled("x", "slow")
    arranged.world.fail_next("set_target_capacity", error, applied=applied)
    with pytest.raises(type(error)):
        arranged.cloud.set_target_capacity(HOME, arranged.fleet, 3)
    assert arranged.world.target(arranged.fleet) == (3 if applied else 0)
    arranged.cloud.set_target_capacity(HOME, arranged.fleet, 1)
    assert [call.operation for call in arranged.world.calls] == ["set_target_capacity"] * 2


def test_frozen_observation_is_stale_while_the_world_moves_on() -> None:
    """Lists lag behind; what is decided from them is checked at the object."""
    arranged = Arranged()
    arranged.cluster.freeze()
    arranged.world.advance(60)
    assert arranged.cluster.observe().nodes == ()
    (node,) = arranged.world.nodes()
    assert len(arranged.cluster.counted_pods_on(node.name)) == 1
    arranged.cluster.freeze(frozen=False)
    assert len(arranged.cluster.observe().nodes) == 1


def test_waiting_for_a_change_moves_the_clock_to_it_and_no_further() -> None:
    """A loop in virtual time must see each change at its moment."""
    arranged = Arranged()
    arranged.cluster.observe()
    assert arranged.cluster.wait_for_change(60)
    assert arranged.world.clock.monotonic_seconds() == 10
    arranged.world.advance(60)
    arranged.cluster.observe()
    before = arranged.world.clock.now()
    assert not arranged.cluster.wait_for_change(60)
    assert arranged.world.clock.now() - before == timedelta(seconds=60)


def test_silent_region_is_left_out_until_none_is_left() -> None:
    """A region that does not answer makes its fleets unknown, not missing."""
    arranged = Arranged()
    arranged.cloud.silent_regions.add(HOME)
    state = arranged.cloud.observe([HOME, AWAY])
    assert state.fleets == ()
    assert state.regions == {AWAY}
    arranged.cloud.silent_regions.add(AWAY)
    with pytest.raises(Unavailable):
        arranged.cloud.observe([HOME, AWAY])


@pytest.mark.parametrize("after", [False, True])
def test_crash_leaves_the_world_as_the_call_left_it(after: bool) -> None:
    """A matrix of crashes that never happen proves nothing."""
    arranged = Arranged(target=0)
    arranged.world.log.crash_at(arranged.world.log.made + 2, after=after)
    arranged.cloud.fleet(HOME, arranged.fleet)
    with pytest.raises(Crash):
        arranged.cloud.set_target_capacity(HOME, arranged.fleet, 3)
    assert arranged.world.target(arranged.fleet) == (3 if after else 0)
    arranged.cloud.set_target_capacity(HOME, arranged.fleet, 1)


def test_calls_take_time_in_which_the_world_moves_on() -> None:
    """Races between plan and action would never be seen."""
    arranged = Arranged()
    arranged.world.advance(5)
    arranged.world.log.seconds_each = 20
    assert arranged.cluster.observe().nodes != ()


def test_empty_pool_sends_a_fleet_to_its_next_one() -> None:
    """A shortage of one type in one zone hits every fleet that uses it, and no other pool."""
    arranged = Arranged(target=0)
    pools = (("r5.xlarge", "us-west-2a"), ("m5.2xlarge", "us-west-2b"))
    fleet = arranged.world.add_fleet(FleetShape(name="two", region=HOME, pools=pools))
    arranged.world.refuse_pool(HOME, *pools[0], "InsufficientInstanceCapacity")
    arranged.cloud.set_target_capacity(HOME, fleet, 1)
    arranged.cloud.set_target_capacity(HOME, arranged.fleet, 1)
    found = {i.fleet_id: i.instance_type for i in arranged.cloud.observe([HOME]).instances}
    assert found == {fleet: "m5.2xlarge"}
    arranged.world.refuse_pool(HOME, *pools[0], None)
    assert len(arranged.cloud.observe([HOME]).instances) == 2


def test_locked_fleet_refuses_to_be_modified() -> None:
    """A fleet may be `modifying` for minutes."""
    arranged = Arranged()
    arranged.world.lock_fleet(arranged.fleet)
    with pytest.raises(Conflict):
        arranged.cloud.set_target_capacity(HOME, arranged.fleet, 2)
    arranged.world.lock_fleet(arranged.fleet, locked=False)
    arranged.cloud.set_target_capacity(HOME, arranged.fleet, 2)


def test_pods_of_a_silent_node_are_given_up_and_end_when_it_answers() -> None:
    """Controllers replace what nobody can reach; the old pod stays until its kubelet says so."""
    arranged = Arranged()
    arranged.world.advance(30)
    (node,) = arranged.world.nodes()
    arranged.world.silence(node.name)
    arranged.world.advance(301)
    assert sorted((p.deleting, p.node_name) for p in arranged.world.pods()) == [
        (False, None),
        (True, node.name),
    ]
    arranged.world.revive(node.name)
    (pod,) = arranged.world.pods()
    assert (pod.deleting, pod.node_name) == (False, node.name)


def test_vanished_instance_is_not_mentioned_and_is_replaced() -> None:
    """EC2 forgets instances; its fleet does not."""
    arranged = Arranged()
    arranged.world.advance(30)
    (gone,) = arranged.cloud.observe([HOME]).instances
    arranged.world.vanish(gone.id)
    arranged.world.advance(60)
    (found,) = arranged.cloud.observe([HOME]).instances
    assert found.id != gone.id


def test_daemon_sets_pods_run_on_every_node_that_joins() -> None:
    """What they take is missing for others."""
    arranged = Arranged(target=2)
    spec = PodSpec(requests=FrozenMap({"cpu": 500, "pods": 1}))
    arranged.world.add_daemon_set(DaemonSet(namespace="kube-system", name="agent", spec=spec))
    arranged.world.advance(30)
    daemons = [p.node_name for p in arranged.world.pods() if p.daemon]
    assert sorted(map(str, daemons)) == sorted(n.name for n in arranged.world.nodes())


def test_lists_with_holes_leave_objects_out_while_the_world_has_them() -> None:
    """An empty list is not an empty cluster."""
    arranged = Arranged(target=2)
    arranged.world.advance(30)
    arranged.world.left_out = {"nodes": 2}
    assert len(arranged.cluster.observe().nodes) == 1
    arranged.world.left_out = {"nodes": 1}
    assert arranged.cluster.observe().nodes == ()
    assert len(arranged.world.nodes()) == 2
