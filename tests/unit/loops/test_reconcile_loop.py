"""The capacity loop: when it turns, how it backs off, when it gives up, what it remembers."""

from collections.abc import Container
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.executor.executor import DryRunExecutor
from reconciler.loops.reconcile_loop import AWAIT_SECONDS
from reconciler.model.actions import (
    FLEET_STATE,
    LAST_DESCHEDULED,
    LAST_DRAIN,
    AnnotateNode,
    EvictPod,
    PolicyName,
)
from reconciler.model.errors import (
    InsufficientCapacity,
    InvariantViolated,
    OutcomeUnknown,
    PortError,
    Throttled,
    Unavailable,
)
from reconciler.model.ids import NodeName
from reconciler.model.plan import InterruptedNode, Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.ports.changes import Window
from reconciler.records.kubernetes import encode_fleet_state
from tests.builders import (
    HOME,
    NOW,
    make_fleet_settings,
    make_pod,
    make_settings,
)
from tests.unit.loops.scene import EMPTY, SLEEP_SECONDS, NoSignal, Scene

READS = {"fleet", "instances", "counted_pods_on", "observe_cloud", "observe_cluster"}


@pytest.mark.parametrize(
    "error",
    [
        Throttled("fleet", "slow down"),
        Unavailable("fleet", "no answer"),
        OutcomeUnknown("fleet", "lost"),
    ],
)
def test_action_that_keeps_failing_is_tried_ever_more_rarely(error: PortError) -> None:
    """A hot loop against a throttled API keeps it throttled."""
    scene = Scene()
    scene.world.add_pod(make_pod("pod", cpu="3", sector="primary"))
    scene.world.fail_next("set_target_capacity", error, times=20)
    scene.run(8)
    assert scene.pauses == [1, 2, 4, 8, 16, SLEEP_SECONDS, SLEEP_SECONDS]


def test_success_ends_the_backoff() -> None:
    """After a good cycle the next trouble is tried again soon."""
    scene = Scene()
    scene.world.add_pod(make_pod("pod", cpu="3", sector="primary"))
    scene.world.fail_next("set_target_capacity", Throttled("fleet", "slow down"), times=3)
    scene.run(5)
    assert scene.pauses[:3] == [1, 2, 4]
    assert scene.world.target(scene.fleet) == 1
    assert scene.recorder.reports[3].settled


def test_failed_observation_is_reported_and_waited_out() -> None:
    """A cycle that cannot see must not act, and must not end the program."""
    scene = Scene()
    scene.world.fail_next("observe_cloud", Unavailable("ec2", "no answer"), times=3)
    scene.run(5)
    assert [report.error is not None for report in scene.recorder.reports] == [True] * 3 + [
        False
    ] * 2
    assert scene.pauses[:3] == [1, 2, 4]
    assert len(scene.recorder.plans) == 2


def test_too_many_failures_in_a_row_end_the_loop() -> None:
    """A program that can do nothing any more should be started afresh, loudly."""
    scene = Scene()
    scene.loop.errors_in_a_row_max = 3
    scene.world.fail_next("observe_cloud", Unavailable("ec2", "no answer"), times=9)
    with pytest.raises(Unavailable):
        scene.run(9)
    assert len(scene.recorder.reports) == 3


def test_one_success_resets_the_count_of_failures() -> None:
    """Failures that come and go are weather."""
    scene = Scene()
    scene.loop.errors_in_a_row_max = 2
    for _ in range(3):
        scene.world.fail_next("observe_cloud", Unavailable("ec2", "no answer"))
        scene.run(2)
    assert len(scene.recorder.reports) == 6


def test_bug_of_ours_ends_the_loop_at_once() -> None:
    """Going on with a broken plan is worse than a restart."""

    def broken(_snapshot: Snapshot) -> Plan:
        raise InvariantViolated("planner", "impossible")

    scene = Scene(planned=broken)
    with pytest.raises(InvariantViolated):
        scene.run(3)
    assert len(scene.began_at) == 1


def test_standby_plans_and_does_not_act() -> None:
    """Two replicas that both buy would buy twice."""
    scene = Scene()
    scene.acting = False
    scene.world.add_pod(make_pod("pod", cpu="3", sector="primary"))
    scene.run(3)
    assert scene.recorder.plans[-1].actions
    assert scene.recorder.outcomes == []
    assert scene.world.target(scene.fleet) == 0


def test_stop_during_planning_acts_no_more() -> None:
    """What was planned for a process that ends is left for the next one."""
    scene = Scene()
    scene.world.add_pod(make_pod("pod", cpu="3", sector="primary"))
    scene.run(1)
    assert scene.recorder.plans[0].actions
    assert scene.recorder.outcomes == []


def test_cool_offs_are_kept_on_the_lease_once() -> None:
    """A restart that forgets a capacity error asks the same empty pool again."""
    saved = SavedFleetState(
        fleet="primary-small", region=HOME, failures=2, unavailable_until=NOW + timedelta(hours=1)
    )
    scene = Scene(planned=lambda _: replace(EMPTY, fleet_states=(saved,)))
    scene.run(3)
    remembered = [call for call in scene.world.calls if call.operation == "remember"]
    assert [call.detail for call in remembered] == [FLEET_STATE]
    assert scene.cluster.observe().fleet_states == (saved,)


def test_lease_that_cannot_be_written_holds_nothing_up() -> None:
    """Missing rights on Leases must not stop scaling, and must be said."""
    saved = SavedFleetState(fleet="primary-small", region=HOME, failures=1)
    scene = Scene(planned=lambda _: replace(EMPTY, fleet_states=(saved,)))
    scene.world.fail_next("remember", Unavailable("lease", "no answer"))
    scene.run(2)
    first = scene.recorder.reports[0]
    assert first.error is None
    assert isinstance(first.unkept, Unavailable)


@pytest.mark.parametrize(
    ("policy", "annotation"),
    [("spot-reschedule", LAST_DRAIN), ("deschedule", LAST_DESCHEDULED)],
)
def test_moved_pod_begins_a_pause_on_the_lease(policy: PolicyName, annotation: str) -> None:
    """Without it a restart would drain the next node, or evict the next pods, at once."""
    scene = Scene()
    key = scene.world.add_pod(make_pod("moved", cpu="1", node="elsewhere"))
    moved = EvictPod(
        pod=key,
        node=scene.world.pods()[0].node_name,  # type: ignore[arg-type] # it has one
        grace_seconds=1,
        policy=policy,
        because="there is room",
    )
    scene.loop.plan = lambda _: replace(EMPTY, actions=(moved,))
    scene.run(2)
    others = {LAST_DRAIN, LAST_DESCHEDULED} - {annotation}
    assert annotation in scene.world.lease_annotations
    assert not others & scene.world.lease_annotations.keys()


def test_raise_refused_for_want_of_capacity_moves_demand_on() -> None:
    """No history tells of it: the same raise would be refused for ever, and pods wait."""
    scene = Scene()
    spare = scene.add_expensive()
    scene.world.add_pod(make_pod("pod", cpu="3", sector="primary"))
    limit = InsufficientCapacity("fleet", "VcpuLimitExceeded: you have reached your limit")
    scene.world.fail_next("set_target_capacity", limit)
    scene.run(4)
    assert [scene.world.target(each) for each in (scene.fleet, spare)] == [0, 1]
    (saved,) = [m for m in scene.cluster.observe().fleet_states if m.failures]
    assert (saved.fleet, saved.failures) == ("primary-small", 1)
    assert "VcpuLimitExceeded" in saved.reason
    asked = [c for c in scene.world.calls if c.operation == "set_target_capacity"]
    assert len(asked) == 2


def test_capacity_error_is_answered_within_five_seconds_of_showing() -> None:
    """Pods would wait a whole sleep interval for EC2 to be looked at again."""
    scene = Scene()
    spare = scene.add_expensive()
    scene.loop.changes = NoSignal(scene)
    scene.world.refuse_launches(scene.fleet, "InsufficientInstanceCapacity")
    scene.world.add_pod(make_pod("pod", cpu="3", sector="primary"))
    scene.run(3)
    assert scene.world.target(spare) == 1
    assert sum(scene.pauses[:1]) <= 5
    scene.run(40)
    (pod,) = scene.world.pods()
    assert pod.node_name is not None


def test_launches_are_looked_after_only_by_whoever_asked_for_them() -> None:
    """A dry run or a standby would ask EC2 every two seconds for ever."""
    for change in ("dry", "standby"):
        scene = Scene()
        scene.loop.changes = NoSignal(scene)
        scene.acting = change != "standby"
        if change == "dry":
            dry(scene)
        scene.world.add_pod(make_pod("pod", cpu="3", sector="primary"))
        scene.run(4)
        assert set(scene.pauses) == {SLEEP_SECONDS}


def dry(scene: Scene) -> None:
    """The same loop, told to change nothing."""
    scene.loop.executor = DryRunExecutor()


def test_dry_run_makes_no_changing_call_whatever_happens() -> None:
    """Somebody tries the program on a production cluster, and it acts."""
    scene = Scene()
    dry(scene)
    scene.world.refuse_launches(scene.fleet, "InsufficientInstanceCapacity")
    scene.world.fleets.set_target(scene.world.fleets.records[scene.fleet], 2)
    scene.world.add_pod(make_pod("pod", cpu="3", sector="primary"))
    scene.run(20)
    assert {call.operation for call in scene.world.calls} <= READS
    assert {outcome.kind for outcome in scene.recorder.outcomes} <= {"dry-run"}
    assert scene.world.lease_annotations == {}


def test_dry_run_without_anything_to_do_writes_no_lease() -> None:
    """A plan without actions has no outcome to tell a dry run by."""
    saved = SavedFleetState(fleet="primary-small", region=HOME, failures=1)
    scene = Scene(planned=lambda _: replace(EMPTY, fleet_states=(saved,)))
    dry(scene)
    scene.run(3)
    assert scene.world.lease_annotations == {}


def test_dry_run_remembers_from_cycle_to_cycle() -> None:
    """What takes time to be seen, a fleet left short say, would never be shown."""
    scene = Scene()
    dry(scene)
    scene.world.refuse_launches(scene.fleet, "InsufficientInstanceCapacity")
    scene.world.fleets.set_target(scene.world.fleets.records[scene.fleet], 2)
    scene.run(3)
    first, *_, last = [p.fleet_states[0].below_target_since for p in scene.recorder.plans]
    assert first == last is not None


def test_memory_outlives_a_lease_that_cannot_be_written() -> None:
    """Without rights on Leases every cycle would ask the empty pool again."""
    told = []

    def planned(snapshot: Snapshot) -> Plan:
        told.append(snapshot.cluster.fleet_states)
        saved = SavedFleetState(fleet="primary-small", region=HOME, failures=len(told))
        return replace(EMPTY, fleet_states=(saved,))

    scene = Scene(planned=planned)
    scene.world.fail_next("remember", Unavailable("lease", "no answer"), times=9)
    scene.run(4)
    assert [m[0].failures if m else 0 for m in told] == [0, 1, 2, 3]


def test_lease_that_another_process_wrote_counts_more_than_our_own_memory() -> None:
    """A leader of yesterday would overwrite what the leader of today has learned."""
    scene = Scene(
        planned=lambda snapshot: replace(EMPTY, fleet_states=snapshot.cluster.fleet_states)
    )
    other = SavedFleetState(fleet="primary-small", region=HOME, failures=7)
    scene.run(2)
    scene.world.lease_annotations[FLEET_STATE] = encode_fleet_state([other])
    scene.run(2)
    assert scene.recorder.plans[-1].fleet_states == (other,)
    assert [c for c in scene.world.calls if c.operation == "remember"] == []


def test_standby_trusts_the_lease_and_not_itself() -> None:
    """What a standby planned was never done."""
    saved = SavedFleetState(fleet="primary-small", region=HOME, failures=1)
    seen = []

    def planned(snapshot: Snapshot) -> Plan:
        seen.append(snapshot.cluster.fleet_states)
        return replace(EMPTY, fleet_states=(saved,))

    scene = Scene(planned=planned)
    scene.acting = False
    scene.run(3)
    assert seen == [(), (), ()]


def test_minimum_that_is_refused_again_and_again_is_one_failure() -> None:
    """It is asked for with every cycle: the fleet would rest for half an hour after seconds."""
    scene = Scene()
    scene.settings = make_settings(make_fleet_settings("small", min_capacity=1))
    limit = InsufficientCapacity("fleet", "VcpuLimitExceeded: you have reached your limit")
    scene.world.fail_next("set_target_capacity", limit, times=4)
    scene.run(6)
    (saved,) = [m for m in scene.cluster.observe().fleet_states if m.failures]
    assert saved.failures == 1


def test_changes_of_demanding_namespaces_gather_for_longer() -> None:
    """A pod of others that comes meanwhile would wait for the end of each of his long plans."""
    gathered: list[Container[str]] = []

    class Gathering(NoSignal):
        """There is a change in each pause."""

        def wait_for_change(self, timeout_seconds: float) -> bool:
            super().wait_for_change(timeout_seconds)
            return True

        def gather(self, window: Window) -> float:
            gathered.append(window.unhurried)
            return super().gather(window)

    def planned(snapshot: Snapshot) -> Plan:
        first = snapshot.previous_at is None
        made = plan(snapshot, scene.settings)
        return replace(made, demanding=frozenset({"greedy"} if first else ()))

    scene = Scene(planned)
    scene.loop.changes = Gathering(scene)
    scene.run(3)
    assert gathered == [{"greedy"}, frozenset()]


@pytest.mark.parametrize(("step", "pause"), [(7.0, 7.0), (0.1, 1.0), (3600.0, None), (None, None)])
def test_plan_for_an_interrupted_node_is_made_when_its_time_comes(
    step: float | None, pause: float | None
) -> None:
    """No event tells that 30 s are left: pods would still run when their node goes."""
    scene = Scene()
    scene.loop.changes = NoSignal(scene)
    planned = scene.loop.plan
    node = InterruptedNode(node=NodeName("n"), empty=False, seconds=60, next_step_seconds=step)
    scene.loop.plan = lambda snapshot: replace(planned(snapshot), interrupted=(node,))
    scene.run(2)
    assert scene.pauses == [pause or SLEEP_SECONDS] * len(scene.pauses)
    assert scene.pauses


def test_failure_elsewhere_does_not_delay_the_look_at_launches() -> None:
    """A capacity error would be seen as late as the longest backoff."""
    scene = Scene()
    scene.loop.changes = NoSignal(scene)
    note = AnnotateNode(node=NodeName("n"), key="k", value="v", policy="scale-in", because="test")
    scene.world.fail_next("annotate_node", Unavailable("node", "no answer"), times=99)
    planned = scene.loop.plan
    scene.loop.plan = lambda snapshot: replace(
        planned(snapshot), actions=(*planned(snapshot).actions, note)
    )
    pod = make_pod("pod", cpu="3", sector="primary")

    def ask() -> None:
        scene.world.add_pod(pod)

    scene.world.clock.call_later(60, ask)
    scene.run(12)
    assert scene.pauses[5] > AWAIT_SECONDS
    assert min(scene.pauses[6:]) <= AWAIT_SECONDS
