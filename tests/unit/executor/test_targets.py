"""What becomes of targets: whose they are, how often they are lowered, and from where."""

from dataclasses import replace

from reconciler.adapters.memory import MemoryCloud
from reconciler.model.errors import Conflict, OutcomeUnknown, Throttled
from tests.builders import HOME
from tests.unit.executor.scene import Scene


def test_terminations_of_one_fleet_lower_its_target_once(scene: Scene) -> None:
    """ModifyFleet per node would meet a fleet that is still being modified, and throttling."""
    assert scene.run(scene.ended(0), scene.tainted(2), scene.ended(1)) == ["applied"] * 3
    assert [name for name, _ in scene.changes()] == [
        "taint_node",
        "set_target_capacity",
        "terminate_instances",
    ]
    assert scene.world.target(scene.fleet) == 1


def test_target_that_another_writer_changed_is_left_alone(scene: Scene) -> None:
    """Terraform or a person may have set the target since the plan was made."""
    cloud = MemoryCloud(scene.world)
    cloud.set_target_capacity(HOME, scene.fleet, 7)
    assert scene.run(scene.raised(5)) == ["refused"]
    assert "its target is 7" in scene.reported[0].detail
    assert scene.world.target(scene.fleet) == 7


def test_target_that_cannot_be_lowered_ends_nothing(scene: Scene) -> None:
    """Terminating first would make the fleet launch a replacement."""
    scene.world.fail_next("set_target_capacity", Throttled("fleet", "slow down"))
    assert scene.run(scene.ended(0), scene.ended(1)) == ["refused", "refused"]
    assert "terminate_instances" not in dict(scene.changes())


def test_stuck_instance_is_ended_without_lowering_the_target(scene: Scene) -> None:
    """The fleet must replace what never joined."""
    assert scene.run(scene.ended(0, decrement=False)) == ["applied"]
    assert scene.world.target(scene.fleet) == 3


def test_protected_instance_is_refused_and_the_others_of_its_call_are_ended(scene: Scene) -> None:
    """They would be reported as refused, and be planned for as if they stayed."""
    protected, other, last = (replace(scene.ended(n), from_capacity=3) for n in range(3))
    scene.world.protect_from_termination(protected.instance)
    assert scene.run(protected, other) == ["refused", "applied"]
    assert [outcome.error for outcome in scene.reported] == ["TerminationProtected", ""]
    assert protected.instance in scene.reported[0].detail
    # The next plan raises the target of the one that stays; until then it is not lowered again.
    assert scene.world.target(scene.fleet) == 1
    assert scene.run(replace(protected, decrement=False)) == ["refused"]
    assert scene.world.target(scene.fleet) == 1
    assert scene.run(replace(last, from_capacity=1)) == ["applied"]


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
