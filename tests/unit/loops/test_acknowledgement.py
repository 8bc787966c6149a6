"""Which sources of changes a cycle names as handled."""

from reconciler.model.errors import Throttled
from reconciler.ports.changes import HandledChanges
from tests.unit.loops.scene import NoSignal, Scene


class Acknowledged(NoSignal):
    """One source, whose changes every cycle handles."""

    def acknowledge(self) -> tuple[HandledChanges, ...]:
        return (HandledChanges(source="queue", seconds=1.5),)


def test_cycle_names_the_sources_that_it_handled() -> None:
    """A slow source would not be seen in the metrics."""
    scene = Scene()
    scene.loop.changes = Acknowledged(scene)
    scene.run(1)
    assert scene.recorder.reports[0].handled == (HandledChanges(source="queue", seconds=1.5),)


def test_cycle_that_failed_is_not_acknowledged() -> None:
    """Its changes would count as handled before any plan has seen them."""
    scene = Scene()
    scene.loop.changes = Acknowledged(scene)
    scene.world.fail_next("observe_cloud", Throttled("ec2", "slow down"))
    scene.run(3)
    assert [len(report.handled) for report in scene.recorder.reports] == [0, 1, 1]
