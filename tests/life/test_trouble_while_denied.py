"""What the alert on trouble is fed with while EC2 denies a call for long."""

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
    assert all("ec2-denied" in each for each in kinds), kinds
