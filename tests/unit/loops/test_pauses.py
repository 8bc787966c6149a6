"""How long the loop pauses between plans, and which changes end the pause."""

import pytest

from reconciler.loops.reconcile_loop import BATCH_SECONDS, CALM_SECONDS
from reconciler.model.actions import INTERRUPTION
from reconciler.model.frozen import FrozenMap
from tests.builders import make_node, make_pod
from tests.unit.loops.scene import SLEEP_SECONDS, Scene


def test_quiet_cluster_is_looked_at_every_sleep_interval() -> None:
    """Changes on EC2's side alone send no event."""
    scene = Scene()
    scene.run(4)
    assert scene.pauses[1:] == [SLEEP_SECONDS] * 2


def test_pending_pod_wakes_the_loop_after_the_batching_window() -> None:
    """A pod that waits for the interval waits twenty seconds too long."""
    scene = Scene()
    pod = make_pod("pod", cpu="3", sector="primary")

    def create() -> None:
        scene.world.add_pod(pod)

    scene.world.clock.call_later(5, create)
    scene.run(3)
    (applied,) = [outcome for outcome in scene.recorder.outcomes if outcome.kind == "applied"]
    assert applied.action.policy == "scale-up"
    assert scene.pauses[0] == 5 + BATCH_SECONDS
    windows = [report.gathered_seconds for report in scene.recorder.reports]
    assert windows[:2] == [0.0, BATCH_SECONDS]


def test_changes_that_ask_for_nothing_are_planned_for_together() -> None:
    """Of the plans in a busy cluster half were made for pods that were bound or had ended."""
    scene = Scene()
    for at in (5, 6):
        scene.world.clock.call_later(at, lambda: scene.world.objects.touch(pressing=False))
    scene.run(2)
    assert scene.pauses == [5 + CALM_SECONDS]


def test_who_wants_plans_more_often_waits_shorter() -> None:
    """With a short `sleep_interval` the next step of a drain would be late by as much again."""
    scene = Scene()
    scene.loop.sleep_seconds = lambda: 10.0
    scene.world.clock.call_later(5, lambda: scene.world.objects.touch(pressing=False))
    scene.run(2)
    assert scene.pauses == [5 + 1.0]


def test_pod_that_begins_to_wait_ends_the_wait_of_other_changes() -> None:
    """It would wait because another pod had ended."""
    scene = Scene()
    pod = make_pod("pod", cpu="3", sector="primary")
    scene.world.clock.call_later(5, lambda: scene.world.objects.touch(pressing=False))
    scene.world.clock.call_later(6, lambda: scene.world.add_pod(pod))
    scene.run(2)
    assert scene.pauses == [6 + BATCH_SECONDS]


def test_nothing_waits_while_a_node_has_to_be_empty_in_time() -> None:
    """Each pod that has come up elsewhere lets a budget release the next one."""
    scene = Scene()
    noticed = make_node(
        "a", annotations=FrozenMap({INTERRUPTION: "terminate/2026-01-31T12:02:00Z"})
    )
    scene.world.add_node(noticed)
    scene.run(1)
    now = scene.world.clock.monotonic_seconds()
    scene.world.clock.call_later(5, lambda: scene.world.objects.touch(pressing=False))
    scene.run(2)
    assert scene.began_at[1] == now
    assert scene.pauses[1] == 5 + BATCH_SECONDS


@pytest.mark.parametrize(
    "announced",
    ["scheduled-change/2026-02-09T12:00:00Z", "rebalance-recommendation/2026-01-30T12:00:00Z"],
)
def test_changes_wait_while_a_node_only_has_to_leave_some_day(announced: str) -> None:
    """Maintenance announced for next week doubled the number of plans until then."""
    scene = Scene()
    scene.world.add_node(make_node("a", annotations=FrozenMap({INTERRUPTION: announced})))
    scene.run(1)
    scene.world.clock.call_later(5, lambda: scene.world.objects.touch(pressing=False))
    scene.run(2)
    assert scene.pauses[1] == 5 + CALM_SECONDS
