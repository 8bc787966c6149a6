"""Servers in trouble: how much is asked of them, when again, and who does not wait for them."""

from contextlib import suppress

from reconciler.adapters.memory import FleetShape, MemoryCloud
from reconciler.executor.rate_limited_ports import RateLimitedCloud
from reconciler.executor.rate_limiter import RATES, RateLimiter
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


def test_throttled_ends_hold_up_no_raise(scene: Scene) -> None:
    """Another program uses up what the account may end: pods waited a minute for their nodes."""
    scene.world.fail_next("terminate_instances", Throttled("instances", "slow down", 60.0))
    assert scene.run(scene.ended()) == ["refused"]
    assert scene.run(scene.ended(1)) == ["refused"]
    assert scene.run(scene.raised(5, before=2)) == ["applied"]


def test_throttled_group_holds_up_no_fleet(scene: Scene) -> None:
    """Auto Scaling counts its calls apart from those of EC2."""
    limiter = RateLimiter(scene.world.clock.monotonic_seconds)
    cloud = MemoryCloud(scene.world)
    scene.world.fail_next("set_target_capacity", Throttled("group", "Rate exceeded", 60.0))
    with suppress(Throttled):
        RateLimitedCloud(cloud, limiter, "asg").set_target_capacity(HOME, scene.fleet, 4)
    RateLimitedCloud(cloud, limiter, "ec2-fleet").set_target_capacity(HOME, scene.fleet, 5)
    assert scene.world.target(scene.fleet) == 5
