"""What the loop tells the sources of changes after a cycle."""

from reconciler.model.errors import Throttled
from reconciler.ports.changes import Handled
from tests.builders import make_pod
from tests.unit.loops.scene import NoSignal, Scene


class Acknowledged(NoSignal):
    """Keeps what the loop acknowledges."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.complete: list[bool] = []

    def acknowledge(self, *, complete: bool) -> tuple[Handled, ...]:
        self.complete.append(complete)
        return (Handled(source="queue", seconds=1.5),)


def test_cycle_names_the_sources_that_it_dealt_with() -> None:
    """A queue would keep its messages, and a slow source would not be seen in the metrics."""
    scene = Scene()
    scene.loop.changes = changes = Acknowledged(scene)
    scene.run(2)
    assert changes.complete == [True, False], "the last one acts no more"
    assert scene.recorder.reports[0].handled == (Handled(source="queue", seconds=1.5),)


def test_cycle_that_failed_is_not_acknowledged() -> None:
    """The message of an interruption would be deleted though no drain began."""
    scene = Scene()
    scene.loop.changes = changes = Acknowledged(scene)
    scene.world.fail_next("observe_cloud", Throttled("ec2", "slow down"))
    scene.run(3)
    assert changes.complete == [True, False]
    assert [len(each.handled) for each in scene.recorder.reports] == [0, 1, 1]


def test_cycle_of_a_standby_is_not_complete() -> None:
    """Only the leader may delete messages: it is the one that drains."""
    scene = Scene()
    scene.loop.changes = changes = Acknowledged(scene)
    scene.acting = False
    scene.run(2)
    assert changes.complete == [False, False]


def test_cycle_with_a_failed_action_is_not_complete() -> None:
    """What failed may be what a message asked for: it has to come again."""
    scene = Scene()
    scene.loop.changes = changes = Acknowledged(scene)
    scene.world.add_pod(make_pod("pod", cpu="3", sector="primary"))
    scene.world.fail_next("set_target_capacity", Throttled("fleet", "slow down"))
    scene.run(2)
    assert changes.complete == [False, False]
