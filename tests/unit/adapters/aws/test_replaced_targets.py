"""An answer of EC2 that is older than our change of a target is recognised."""

from typing import Any

from reconciler.adapters.aws.replaced_targets import ReplacedTargets
from reconciler.model.ids import FleetId, Region

WEST = Region("us-west-2")
ID = FleetId("fleet-1")


class Scene:
    """One fleet, and how its answers count."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.known = ReplacedTargets(lambda: self.seconds)

    def counts(self, target: int, after_seconds: float = 0.0) -> int:
        """The target that counts when an answer shows this one, so much later."""
        self.seconds += after_seconds
        fleet: dict[str, Any] = {
            "FleetId": ID,
            "TargetCapacitySpecification": {"TotalTargetCapacity": target},
        }
        (found,) = self.known.corrected(WEST, [fleet])
        return int(found["TargetCapacitySpecification"]["TotalTargetCapacity"])

    def set(self, target: int) -> None:
        """EC2 accepts a target."""
        self.known.changed(WEST, ID, target)


def test_answers_of_before_our_changes_count_as_the_last_target() -> None:
    """Ended nodes would be launched again, and the next idle ones would look like too many."""
    scene = Scene()
    assert scene.counts(8) == 8
    scene.set(7)
    assert scene.counts(8, 5) == 7
    scene.set(6)
    assert [scene.counts(each, 1) for each in (8, 7, 6, 7)] == [6, 6, 6, 6]


def test_raise_that_was_rolled_back_counts() -> None:
    """Terraform set the target that its plan knew; the pods still wait for the nodes."""
    scene = Scene()
    scene.counts(1)
    scene.set(3)
    assert [scene.counts(3, 1), scene.counts(1, 1)] == [3, 1]


def test_target_of_another_writer_counts() -> None:
    """A person's target would be overwritten."""
    scene = Scene()
    scene.counts(8)
    scene.set(7)
    assert scene.counts(9, 1) == 9
    assert scene.counts(8, 1) == 8


def test_old_target_counts_again_after_a_while() -> None:
    """Somebody may have set it once more."""
    scene = Scene()
    scene.counts(8)
    scene.set(7)
    assert scene.counts(8, 61) == 8


def test_own_return_to_an_old_target_counts() -> None:
    """What was lowered and raised again is as it was first."""
    scene = Scene()
    scene.counts(8)
    scene.set(7)
    scene.set(8)
    assert scene.counts(8, 1) == 8


def test_only_targets_of_the_last_minute_are_kept() -> None:
    """A fleet that scales for weeks would remember every target it ever had."""
    scene = Scene()
    for target in range(100, 0, -1):
        scene.set(target)
        scene.seconds += 10
    (replaced,) = scene.known._replaced_at.values()
    assert len(replaced) == 6
