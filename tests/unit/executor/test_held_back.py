"""Servers in trouble: how much is asked of them, when again, and who does not wait for them."""

from reconciler.adapters.memory import FleetShape
from reconciler.executor.rate_limiter import RATES
from reconciler.model.actions import UNNEEDED_SINCE, AnnotateNode
from reconciler.model.errors import Throttled, Unavailable
from reconciler.model.ids import NodeName
from tests.builders import HOME
from tests.unit.executor.scene import Scene


def test_throttled_fleet_holds_up_no_other(scene: Scene) -> None:
    """One fleet's trouble would stop scaling everywhere."""
    other = scene.world.add_fleet(FleetShape(name="primary-large", region=HOME))
    scene.world.fail_next("set_target_capacity", Unavailable("fleet", "no answer"))
    outcomes = scene.run(scene.raised(5), scene.raised(2, other, before=0), scene.tainted())
    assert outcomes == ["failed", "applied", "applied"]


def test_calls_beyond_the_bucket_are_left_for_the_next_plan(scene: Scene) -> None:
    """A plan over a thousand nodes would be a storm of calls."""
    allowed = int(RATES["nodes"].capacity)
    actions = [
        AnnotateNode(
            node=NodeName(f"gone-{number:03}"),
            key=UNNEEDED_SINCE,
            value=str(number),
            policy="scale-in",
            because="test",
        )
        for number in range(allowed + 50)
    ]
    assert scene.run(*actions) == ["already-done"] * allowed + ["refused"] * 50
    assert "our own limit" in scene.reported[allowed].detail
    scene.world.advance(10)
    assert scene.run(*actions[:50]) == ["already-done"] * 50


def test_throttled_server_is_not_asked_again_before_it_says(scene: Scene) -> None:
    """Retry-After is there to be kept."""
    scene.world.fail_next("set_target_capacity", Throttled("fleet", "slow down", 5.0))
    assert scene.run(scene.raised(4)) == ["refused"]
    asked = len(scene.changes())
    assert scene.run(scene.raised(4)) == ["refused"]
    assert len(scene.changes()) == asked
    scene.world.advance(6)
    assert scene.run(scene.raised(4)) == ["applied"]
