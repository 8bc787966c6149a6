"""Bookkeeping in the running loop: it gives way to new pods, and is done all the same."""

from reconciler.adapters.memory.faults import Call
from reconciler.executor.executor import NOTES_MIN
from tests.builders import HOME, make_pod
from tests.unit.loops.scene import Scene

IDLE = 60


def noted(scene: Scene) -> int:
    """Calls that wrote a timer."""
    return sum(call.operation == "annotate_node" for call in scene.world.calls)


def test_pod_that_comes_while_timers_are_written_waits_for_few_of_them() -> None:
    """A plan with hundreds of timers held up the next one, which was for pods, by seconds."""
    scene = Scene()
    scene.cloud.set_target_capacity(HOME, scene.fleet, IDLE)
    scene.world.advance(60)
    scene.world.calls.clear()

    def pod_comes(call: Call) -> None:
        if call.operation == "annotate_node" and noted(scene) == 1:
            scene.world.add_pod(make_pod("large", cpu=100))

    scene.world.log.watchers.append(pod_comes)
    scene.run(2)  # the last one only plans
    assert noted(scene) == NOTES_MIN
    assert scene.recorder.reports[0].settled, "what is left undone is no failure"
    scene.run(2)  # the last one only plans
    assert noted(scene) == IDLE
