"""The executor over the in-memory world: order, dependents, idempotency, stops, dry runs."""

from dataclasses import replace

import pytest

from reconciler.adapters.kubernetes.errors import NotAccepted
from reconciler.adapters.memory import MemoryCluster
from reconciler.executor.executor import DryRunExecutor
from reconciler.model.actions import (
    DRAIN_STARTED,
    DRAINING_TAINT,
    UNNEEDED_SINCE,
    AnnotateNode,
    DeleteNode,
    DeletePod,
    EvictPod,
    SetCapacity,
    UntaintNode,
)
from reconciler.model.errors import InvariantViolated, OutcomeUnknown, Refused, Unavailable
from reconciler.model.ids import FleetId, NodeName, PodKey
from reconciler.model.outcome import Outcome
from tests.builders import HOME
from tests.unit.executor.scene import Scene


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


def test_termination_is_not_moved_ahead_of_a_step_on_its_own_node(scene: Scene) -> None:
    """Grouping must not end a node before what comes first on it."""
    back = UntaintNode(
        node=scene.nodes[1].name, key=DRAINING_TAINT, policy="scale-up", because="test"
    )
    scene.run(scene.ended(1), back, scene.ended(0))
    assert [name for name, _ in scene.changes()] == [
        "set_target_capacity",
        "terminate_instances",
        "untaint_node",
    ]


def test_outcome_names_a_class_that_everybody_knows(scene: Scene) -> None:
    """With a class of an adapter the status did not say that the API server denies it."""
    scene.world.fail_next("taint_node", NotAccepted("node", "401 Unauthorized"))
    scene.run(scene.tainted())
    assert [outcome.error for outcome in scene.reported] == ["Forbidden"]


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
    assert kinds == ["failed", "applied", "refused", "refused"]
    assert "an earlier step failed" in scene.reported[2].detail
    assert [name for name, _ in scene.changes()] == ["taint_node", "taint_node"]


def test_forced_step_is_tried_though_an_earlier_one_on_its_node_failed(scene: Scene) -> None:
    """EC2 takes the node in two minutes, whether or not an admission policy lets it be marked."""
    scene.world.fail_next("annotate_node", Refused("node", "an admission policy"))
    scene.world.fail_next("taint_node", Refused("node", "an admission policy"))
    node = scene.nodes[0].name
    began = AnnotateNode(
        node=node, key=DRAIN_STARTED, value="now", policy="interruption", because="test"
    )
    evicted, deleted = (
        kind(
            pod=PodKey(namespace="web", name=name),
            node=node,
            grace_seconds=30,
            policy="interruption",
            because="test",
            forced=True,
        )
        for kind, name in ((EvictPod, "a"), (DeletePod, "b"))
    )
    forced = replace(scene.tainted(0), forced=True)
    kinds = scene.run(began, forced, evicted, deleted, scene.ended(0))
    assert kinds == ["refused", "refused", "already-done", "already-done", "refused"]
    assert [name for name, _ in scene.changes()] == [
        "annotate_node",
        "taint_node",
        "evict_pod",
        "delete_pod",
    ]


def test_note_on_a_node_waits_for_the_taint_before_it(scene: Scene) -> None:
    """The start of a drain would be noted on a node on which none has begun."""
    scene.world.fail_next("taint_node", Unavailable("node", "does not answer"))
    started = AnnotateNode(
        node=scene.nodes[0].name, key=DRAIN_STARTED, value="now", policy="scale-in", because="test"
    )
    assert scene.run(scene.tainted(0), started) == ["failed", "refused"]
    assert [name for name, _ in scene.changes()] == ["taint_node"]


def test_refused_eviction_holds_no_other_pod_of_its_node(scene: Scene) -> None:
    """A tenant's two budgets over one pod would keep every other pod there until it dies."""
    scene.world.fail_next("evict_pod", Refused("pod aaa/0", "has two budgets"))
    node = scene.nodes[0].name
    pods = [PodKey(namespace=namespace, name="0") for namespace in ("aaa", "shop", "web")]
    evicted = [
        EvictPod(pod=pod, node=node, grace_seconds=30, policy="interruption", because="test")
        for pod in pods[:2]
    ]
    deleted = DeletePod(
        pod=pods[2], node=node, grace_seconds=30, policy="interruption", because="test"
    )
    timer = AnnotateNode(
        node=node, key=UNNEEDED_SINCE, value="now", policy="scale-in", because="test"
    )
    kinds = scene.run(*evicted, deleted, timer, scene.ended(0))
    assert kinds == ["refused", "already-done", "already-done", "refused", "refused"]
    assert [outcome.action for outcome in scene.reported[:3]] == [*evicted, deleted]
    assert scene.changes() == [
        ("evict_pod", "aaa/0"),
        ("evict_pod", "shop/0"),
        ("delete_pod", "web/0"),
    ], "the failure closes the node for later stages: its end"


def test_pod_is_deleted_with_the_grace_that_the_plan_gives(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grace of zero is a forced deletion: a StatefulSet's pod could run twice."""
    asked: list[tuple[PodKey, int]] = []

    def delete_pod(_: MemoryCluster, pod: PodKey, grace_seconds: int) -> bool:
        asked.append((pod, grace_seconds))
        return True

    monkeypatch.setattr(MemoryCluster, "delete_pod", delete_pod)
    pod, node = PodKey(namespace="web", name="api"), scene.nodes[0].name
    deleted = DeletePod(pod=pod, node=node, grace_seconds=20, policy="interruption", because="")
    assert scene.run(deleted) == ["applied"]
    assert asked == [(pod, 20)]


def test_plan_carried_out_twice_changes_nothing_the_second_time(scene: Scene) -> None:
    """After a crash the same plan may be made again."""
    plan = (scene.raised(4), scene.tainted(0), scene.ended(0))
    scene.run(*plan)
    targets = scene.world.target(scene.fleet)
    again = scene.run(scene.raised(targets, before=3), *plan[1:])
    assert again == ["already-done"] * 3
    assert scene.world.target(scene.fleet) == targets


def test_lost_reply_is_reported_as_unknown(scene: Scene) -> None:
    """Taken for a failure it would be repeated, taken for a success never looked at."""
    lost = OutcomeUnknown("fleet", "the reply was lost")
    scene.world.fail_next("set_target_capacity", lost, applied=True)
    assert scene.run(scene.raised(5)) == ["unknown"]
    assert scene.run(scene.raised(5)) == ["already-done"]


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
    assert [outcome.kind for outcome in outcomes] == ["dry-run"] * 3
    assert scene.reported == list(outcomes)
    assert scene.world.calls == []
