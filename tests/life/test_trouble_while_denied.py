"""What the alert on trouble is fed with while EC2 denies a call for long."""

from reconciler.adapters.memory.faults import Call
from reconciler.model.errors import Forbidden
from reconciler.web.board import StatusBoard
from reconciler.web.verdict import verdict_of
from tests.builders import make_fleet_settings
from tests.life.programs import Config
from tests.life.scene import Scene

MINUTES = 40


def test_denied_raises_are_trouble_in_every_minute() -> None:
    """Only a few raises are tried after the first minutes: their number is no alarm any more."""
    fleet = make_fleet_settings("small", pods=20, spot=False)
    scene = Scene(Config(unhurried=True), departed=False, fleets=(fleet,))
    process = scene.stage.process
    process.sleep_seconds = lambda: 20.0
    board = StatusBoard(scene.world.clock, "1", lambda: True)
    process.plan_hooks.append(board.plan_made)
    process.outcome_hooks.append(board.action_ended)
    scene.pods("api", "2", 3)
    denied = Forbidden("fleet-1", "UnauthorizedOperation")
    scene.world.log.fail_next("set_target_capacity", denied, times=10**6)
    began = process.now
    kinds = []
    for minute in range(1, MINUTES + 1):
        process.run_until(began + 60 * minute)
        kinds.append({cause.kind for cause in verdict_of(board).causes})
    assert all("ec2-denied" in kind for kind in kinds), kinds


def test_denied_evictions_are_trouble_in_every_minute() -> None:
    """The node rests for half an hour between two drains: the verdict was OK every other time."""
    scene = Scene(Config(unhurried=True), departed=False)
    process = scene.stage.process
    process.sleep_seconds = lambda: 60.0
    board = StatusBoard(scene.world.clock, "1", lambda: True)
    process.plan_hooks.append(board.plan_made)
    process.outcome_hooks.append(board.action_ended)
    big = scene.pods("big", "2500m", 2)
    process.run_for(100)
    scene.pods("stay", "300m")
    scene.pods("small", "300m", 3)
    process.run_for(400)
    at = {pod.key.name: pod.node_name for pod in scene.world.pods()}
    scene.remove([key for key in big if at[key.name] == at["stay-0"]])

    def deny(call: Call) -> None:
        if call.operation == "evict_pod":
            raise Forbidden("pods/eviction", "cannot create resource")

    scene.world.log.watchers.append(deny)
    process.run_for(600)
    kinds = []
    for _ in range(180):
        process.run_for(60)
        kinds.append({cause.kind for cause in verdict_of(board).causes})
    assert all("action-failed" in kind for kind in kinds), kinds
    scene.world.log.watchers.remove(deny)
    process.run_for(3600)
    assert "action-failed" not in {cause.kind for cause in verdict_of(board).causes}
