"""The executor over the in-memory world: order, dependents, idempotency, other writers."""

from dataclasses import replace

import pytest

from reconciler.adapters.memory import Delays, FleetShape, MemoryCloud, MemoryCluster, MemoryWorld
from reconciler.executor.executor import DryRunExecutor, LiveExecutor
from reconciler.executor.sides import Sides
from reconciler.executor.tokens import RATES
from reconciler.model.actions import (
    DRAINING_TAINT,
    UNNEEDED_SINCE,
    AnnotateNode,
    AnyAction,
    DeleteNode,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node, Taint
from reconciler.model.errors import (
    Conflict,
    InvariantViolated,
    OutcomeUnknown,
    Throttled,
    Unavailable,
)
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey, Region
from reconciler.model.outcome import Outcome
from tests.builders import HOME, amounts, make_pod

TAINT = Taint(key=DRAINING_TAINT, value="scale-in", effect="NoSchedule")
READS = {"fleet", "instances", "counted_pods_on", "joined", "observe_cloud", "observe_cluster"}


class Scene:
    """A world with one fleet of three joined nodes, and an executor on it."""

    def __init__(self) -> None:
        delays = Delays(modify=0, launch=1, join=1, terminate=1, node_gone=1, pod_stop=1)
        self.world = MemoryWorld(delays=delays)
        shape = FleetShape(
            name="primary-small", region=HOME, allocatable=amounts(cpu=4, memory="16Gi", pods=20)
        )
        self.fleet = self.world.add_fleet(shape, target=3)
        self.world.advance(5)
        self.world.calls.clear()
        sides = Sides(
            cluster=MemoryCluster(self.world), clouds={"ec2-fleet": MemoryCloud(self.world)}
        )
        self.stopping = False
        self.executor = LiveExecutor(
            sides, self.world.clock.monotonic_seconds, lambda: self.stopping
        )
        self.reported: list[Outcome] = []

    @property
    def nodes(self) -> list[Node]:
        return self.world.nodes()

    def run(self, *actions: AnyAction) -> list[str]:
        """The kinds of the outcomes."""
        return [each.kind for each in self.executor.execute(actions, self.reported.append)]

    def changes(self) -> list[tuple[str, str]]:
        """Calls that change something, in order."""
        return [(c.operation, c.subject) for c in self.world.calls if c.operation not in READS]

    def raised(self, to: int, fleet: FleetId | None = None, before: int = 3) -> SetCapacity:
        return SetCapacity(
            fleet="primary-small" if fleet is None else fleet,
            provider="ec2-fleet",
            id=fleet or self.fleet,
            region=HOME,
            from_capacity=before,
            to_capacity=to,
            policy="scale-up",
            because="test",
        )

    def tainted(self, number: int = 0) -> TaintNode:
        return TaintNode(
            node=self.nodes[number].name, taint=TAINT, policy="scale-in", because="test"
        )

    def ended(self, number: int = 0, *, decrement: bool = True) -> TerminateInstance:
        node = self.nodes[number]
        assert node.instance_id is not None
        return TerminateInstance(
            instance=node.instance_id,
            node=node.name,
            fleet="primary-small",
            fleet_id=self.fleet,
            provider="ec2-fleet",
            region=HOME,
            decrement=decrement,
            policy="scale-in",
            because="test",
        )


@pytest.fixture
def scene() -> Scene:
    """Three idle nodes."""
    return Scene()


def test_actions_are_carried_out_in_their_order(scene: Scene) -> None:
    """A termination before its taint would race the scheduler."""
    second = scene.nodes[1].name
    assert scene.run(scene.raised(5), scene.tainted(), scene.ended(1)) == ["applied"] * 3
    assert scene.changes() == [
        ("set_target_capacity", scene.fleet),
        ("taint_node", scene.nodes[0].name),
        ("set_target_capacity", scene.fleet),
        ("terminate_instances", scene.world.nodes()[1].instance_id),
    ]
    assert scene.world.node(second) is not None


def test_terminations_of_one_fleet_lower_its_target_once(scene: Scene) -> None:
    """ModifyFleet per node would meet a fleet that is still being modified, and throttling."""
    assert scene.run(scene.ended(0), scene.tainted(2), scene.ended(1)) == ["applied"] * 3
    assert [name for name, _ in scene.changes()] == [
        "set_target_capacity",
        "terminate_instances",
        "taint_node",
    ]
    assert scene.world.target(scene.fleet) == 1


def test_termination_is_not_moved_ahead_of_a_step_on_its_own_node(scene: Scene) -> None:
    """Grouping must not end a node before what comes first on it."""
    scene.run(scene.ended(0), scene.tainted(1), scene.ended(1))
    assert [name for name, _ in scene.changes()] == [
        "set_target_capacity",
        "terminate_instances",
        "taint_node",
        "set_target_capacity",
        "terminate_instances",
    ]


def test_failure_ends_what_depends_on_it_and_nothing_else(scene: Scene) -> None:
    """One broken node must neither be drained half nor hold up another."""
    scene.world.fail_next("taint_node", Unavailable("node", "does not answer"))
    evicted = EvictPod(
        pod=PodKey(namespace="web", name="api"),
        node=scene.nodes[0].name,
        grace_seconds=30,
        policy="scale-in",
        because="test",
    )
    kinds = scene.run(scene.tainted(0), evicted, scene.ended(0), scene.tainted(1))
    assert kinds == ["failed", "refused", "refused", "applied"]
    assert "an earlier step failed" in scene.reported[1].detail
    assert [name for name, _ in scene.changes()] == ["taint_node", "taint_node"]


def test_plan_carried_out_twice_changes_nothing_the_second_time(scene: Scene) -> None:
    """After a crash the same plan may be made again."""
    plan = (scene.raised(4), scene.tainted(0), scene.ended(0))
    scene.run(*plan)
    targets = scene.world.target(scene.fleet)
    again = scene.run(scene.raised(targets, before=3), *plan[1:])
    assert again == ["already-done"] * 3
    assert scene.world.target(scene.fleet) == targets


def test_target_that_another_writer_changed_is_left_alone(scene: Scene) -> None:
    """Terraform or a person may have set the target since the plan was made."""
    cloud = MemoryCloud(scene.world)
    cloud.set_target_capacity(HOME, scene.fleet, 7)
    assert scene.run(scene.raised(5)) == ["refused"]
    assert "its target is 7" in scene.reported[0].detail
    assert scene.world.target(scene.fleet) == 7


def test_node_with_a_pod_that_came_late_is_not_ended(scene: Scene) -> None:
    """Between plan and act the scheduler may have used the node."""
    pod = make_pod("late", node=scene.nodes[0].name)
    scene.world.add_pod(pod)
    assert scene.run(scene.ended(0), scene.ended(1)) == ["refused", "applied"]
    assert scene.world.target(scene.fleet) == 2
    assert "late" in scene.reported[0].detail


def test_target_that_cannot_be_lowered_ends_nothing(scene: Scene) -> None:
    """Terminating first would make the fleet launch a replacement."""
    scene.world.fail_next("set_target_capacity", Throttled("fleet", "slow down"))
    assert scene.run(scene.ended(0), scene.ended(1)) == ["refused", "refused"]
    assert "terminate_instances" not in dict(scene.changes())


def test_lost_reply_is_reported_as_unknown(scene: Scene) -> None:
    """Taken for a failure it would be repeated, taken for a success never looked at."""
    lost = OutcomeUnknown("fleet", "the reply was lost")
    scene.world.fail_next("set_target_capacity", lost, applied=True)
    assert scene.run(scene.raised(5)) == ["unknown"]
    assert scene.run(scene.raised(5)) == ["already-done"]


def test_stuck_instance_is_ended_without_lowering_the_target(scene: Scene) -> None:
    """The fleet must replace what never joined."""
    assert scene.run(scene.ended(0, decrement=False)) == ["applied"]
    assert scene.world.target(scene.fleet) == 3


def test_vanished_node_counts_as_done(scene: Scene) -> None:
    """What is gone needs no cleaning."""
    gone = NodeName("gone")
    kinds = scene.run(
        UntaintNode(node=gone, key=DRAINING_TAINT, policy="scale-in", because=""),
        AnnotateNode(node=gone, key=UNNEEDED_SINCE, value=None, policy="scale-in", because=""),
        DeleteNode(node=gone, policy="scale-in", because=""),
    )
    assert kinds == ["already-done"] * 3


def test_stop_leaves_the_rest_for_the_next_start(scene: Scene) -> None:
    """A plan of a hundred steps must not outlive the kubelet's patience."""
    scene.stopping = True
    assert scene.run(scene.raised(5), scene.tainted()) == []
    assert scene.changes() == []


def test_provider_without_an_adapter_is_refused(scene: Scene) -> None:
    """A group that this process cannot reach must not end it."""
    action = SetCapacity(
        fleet="workers",
        provider="asg",
        id=FleetId("workers"),
        region=HOME,
        from_capacity=0,
        to_capacity=1,
        policy="scale-up",
        because="test",
    )
    assert scene.run(action) == ["refused"]


def test_bug_of_ours_ends_the_execution(scene: Scene) -> None:
    """Going on after a broken invariant could end the wrong node."""

    def report(_outcome: Outcome) -> None:
        raise InvariantViolated("report", "impossible")

    with pytest.raises(InvariantViolated):
        scene.executor.execute([scene.tainted(), scene.tainted(1)], report)
    assert [name for name, _ in scene.changes()] == ["taint_node"]


def test_dry_run_reports_everything_and_changes_nothing(scene: Scene) -> None:
    """A dry run that acts is worse than none."""
    actions = (scene.raised(5), scene.tainted(), scene.ended())
    outcomes = DryRunExecutor().execute(actions, scene.reported.append)
    assert [each.kind for each in outcomes] == ["dry-run"] * 3
    assert scene.reported == list(outcomes)
    assert scene.world.calls == []


def test_instance_that_never_joined_is_a_subject_of_its_own(scene: Scene) -> None:
    """Two instances without a node must not be taken for one."""
    known = scene.ended(0, decrement=False)
    scene.world.objects.remove_node(scene.nodes[0].name)
    first, second = (
        TerminateInstance(
            instance=InstanceId(name),
            node=None,
            fleet=known.fleet,
            fleet_id=known.fleet_id,
            provider=known.provider,
            region=known.region,
            decrement=False,
            policy="stuck-instance",
            because="never joined",
        )
        for name in ("i-0", str(known.instance))
    )
    scene.world.fail_next("instances", Unavailable("ec2", "does not answer"))
    assert scene.run(first, second) == ["failed", "applied"]


def deleted(scene: Scene, number: int = 0, *, region: Region | None = HOME) -> DeleteNode:
    """The end of a Node object, with the instance that it was."""
    node = scene.nodes[number]
    return DeleteNode(
        node=node.name,
        instance=node.instance_id,
        region=region,
        policy="stuck-instance",
        because="test",
    )


def test_node_whose_instance_lives_after_all_is_not_deleted(scene: Scene) -> None:
    """Its pods run, and the garbage collector would kill every one of them."""
    assert scene.run(deleted(scene)) == ["refused"]
    assert len(scene.nodes) == 3


def test_node_whose_instance_is_gone_is_deleted(scene: Scene) -> None:
    """A name without a machine keeps its pods from being made anew."""
    action = deleted(scene)
    assert action.instance is not None
    scene.world.end_instance(action.instance)
    assert scene.run(action) == ["applied"]


def test_node_is_not_deleted_while_ec2_does_not_answer(scene: Scene) -> None:
    """Silence is no proof that an instance is gone."""
    action = deleted(scene)
    assert action.instance is not None
    scene.world.end_instance(action.instance)
    scene.world.fail_next("instances", Unavailable("ec2", "no answer"))
    assert scene.run(action) == ["failed"]


def orphaned(scene: Scene, number: int = 0) -> TerminateInstance:
    """The end of an instance whose fleet is believed to be gone."""
    return replace(scene.ended(number, decrement=False), orphan=True)


def test_orphan_whose_fleet_is_gone_is_ended(scene: Scene) -> None:
    """It would be billed for ever."""
    action = orphaned(scene)
    scene.world.delete_fleet(scene.fleet)
    assert scene.run(action) == ["applied"]
    assert [name for name, _ in scene.changes()] == ["terminate_instances"]


def test_orphan_whose_fleet_is_there_after_all_is_left_alone(scene: Scene) -> None:
    """A list that left the fleet out would cost it all its nodes."""
    assert scene.run(orphaned(scene)) == ["refused"]
    assert scene.changes() == []


def test_orphan_is_left_alone_while_nobody_can_tell(scene: Scene) -> None:
    """Throttled is not gone."""
    action = orphaned(scene)
    scene.world.delete_fleet(scene.fleet)
    scene.world.fail_next("fleet", Throttled("fleet", "slow down"))
    assert scene.run(action) == ["refused"]
    assert scene.changes() == []


@pytest.mark.parametrize(("orphan", "decrement"), [(True, False), (False, True), (False, False)])
def test_instance_that_belongs_to_another_fleet_is_left_alone(
    scene: Scene, orphan: bool, decrement: bool
) -> None:
    """Somebody else's instance would be ended, and our fleet's target be lowered for it."""
    action = replace(scene.ended(0, decrement=decrement), fleet_id=FleetId("fleet-other"))
    assert scene.run(replace(action, orphan=orphan)) == ["refused"]
    assert scene.changes() == []


def test_orphan_with_a_pod_that_came_late_is_not_ended(scene: Scene) -> None:
    """The last check holds for orphans too."""
    action = orphaned(scene)
    scene.world.add_pod(make_pod("late", node=scene.nodes[0].name))
    scene.world.delete_fleet(scene.fleet)
    assert scene.run(action) == ["refused"]


def test_throttled_fleet_holds_up_no_other(scene: Scene) -> None:
    """One fleet's trouble would stop scaling everywhere."""
    other = scene.world.add_fleet(FleetShape(name="primary-large", region=HOME))
    scene.world.fail_next("set_target_capacity", Unavailable("fleet", "no answer"))
    outcomes = scene.run(scene.raised(5), scene.raised(2, other, before=0), scene.tainted())
    assert outcomes == ["failed", "applied", "applied"]


def test_calls_beyond_the_bucket_are_left_for_the_next_plan(scene: Scene) -> None:
    """A plan over a thousand nodes would be a storm of calls."""
    assert RATES["nodes"].capacity == 200
    actions = [
        AnnotateNode(
            node=scene.nodes[0].name,
            key=UNNEEDED_SINCE,
            value=str(number),
            policy="scale-in",
            because="test",
        )
        for number in range(250)
    ]
    assert scene.run(*actions) == ["applied"] * 200 + ["refused"] * 50
    assert "held back" in scene.reported[200].detail
    scene.world.advance(10)
    assert scene.run(*actions[:50]) == ["applied"] * 50


def test_throttled_server_is_not_asked_again_before_it_says(scene: Scene) -> None:
    """Retry-After is there to be kept."""
    scene.world.fail_next("set_target_capacity", Throttled("fleet", "slow down", 5.0))
    assert scene.run(scene.raised(4)) == ["refused"]
    asked = len(scene.changes())
    assert scene.run(scene.raised(4)) == ["refused"]
    assert len(scene.changes()) == asked
    scene.world.advance(6)
    assert scene.run(scene.raised(4)) == ["applied"]


def test_instance_that_became_a_node_meanwhile_is_not_ended_as_stuck(scene: Scene) -> None:
    """The plan was made from a stale or holey list: a machine at work would be ended."""
    stuck = replace(scene.ended(decrement=False), node=None, policy="stuck-instance")
    assert scene.run(stuck) == ["refused"]
    assert scene.changes() == []
    assert "is a node by now" in scene.reported[0].detail
    scene.world.objects.remove_node(scene.nodes[0].name)
    assert scene.run(stuck) == ["applied"]


def test_instance_is_not_ended_as_stuck_while_nobody_can_tell(scene: Scene) -> None:
    """An API server that does not answer is no proof that a machine is idle."""
    stuck = replace(scene.ended(decrement=False), node=None, policy="stuck-instance")
    scene.world.fail_next("joined", Unavailable("nodes", "503"))
    assert scene.run(stuck) == ["failed"]
    assert scene.changes() == []


def test_target_that_is_not_the_plans_any_more_is_not_lowered(scene: Scene) -> None:
    """After a lost reply a stale describe shows the old target: it would go down twice."""
    ending = replace(scene.ended(), from_capacity=3)
    scene.world.fail_next("set_target_capacity", OutcomeUnknown("ec2", "lost"), applied=True)
    assert scene.run(ending) == ["unknown"]
    assert scene.run(ending) == ["refused"]
    assert scene.world.target(scene.fleet) == 2
    assert "is 2, not 3" in scene.reported[-1].detail


def test_target_that_the_same_plan_raised_is_lowered_from_there(scene: Scene) -> None:
    """A plan that grows and shrinks one fleet would never end its nodes."""
    first, second = (replace(scene.ended(n), from_capacity=3) for n in (0, 1))
    assert scene.run(scene.raised(5), first, second) == ["applied"] * 3
    assert scene.world.target(scene.fleet) == 3


def test_node_is_not_ended_when_the_raise_that_replaces_it_failed(scene: Scene) -> None:
    """The target would go below the fleet's minimum, and the pods have nowhere to go."""
    ending = replace(scene.ended(), from_capacity=3)
    scene.world.fail_next("set_target_capacity", Conflict("ec2", "modifying"))
    assert scene.run(scene.raised(4), ending)[-1] == "refused"
    assert scene.world.target(scene.fleet) == 3
