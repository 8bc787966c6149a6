"""A rolling update whose evictions are refused: few nodes come unused, and it is reported."""

from dataclasses import replace

import pytest

from reconciler.adapters.memory.faults import Call
from reconciler.model.actions import RESUME_UPDATE
from reconciler.model.errors import Refused
from reconciler.model.plan import FleetUpdate
from reconciler.planner.disruption_settings import RollingUpdate
from reconciler.web.board import StatusBoard
from reconciler.web.causes.cause import Cause
from reconciler.web.verdict import verdict_of
from tests.builders import HOME
from tests.life.programs import Config
from tests.life.scene import Scene

MINUTE, HOUR = 60.0, 3600.0
NODES = 3
FLEET = "primary-small"


class RefusedUpdate:
    """Three full nodes whose fleet has a new version, and a webhook that lets no pod be evicted."""

    def __init__(self) -> None:
        self.scene = Scene(Config(unhurried=True), departed=False)
        self.process = self.scene.stage.process
        rules = RollingUpdate(batch_max=2, pause_seconds=60, canary_seconds=300)
        self.process.settings = replace(self.process.settings, rolling_update=rules)
        self.process.sleep_seconds = lambda: MINUTE
        self.board = StatusBoard(self.scene.world.clock, "1", lambda: True)
        self.process.plan_hooks.append(self.board.plan_made)
        self.process.plan_hooks.append(lambda _, plan: self.updates.append(plan.updates))
        self.updates: list[tuple[FleetUpdate, ...]] = []
        self.refuses = True
        self.scene.pods("web", "3", NODES)
        self.process.run_for(10 * MINUTE)
        self.scene.world.log.watchers.append(self._refuse)
        self.before = self.launches()
        self.scene.world.change_template(self.scene.stage.fleets[FLEET, HOME])

    def _refuse(self, call: Call) -> None:
        if self.refuses and call.operation == "evict_pod":
            raise Refused("pods/eviction", "admission webhook denies it")

    def launches(self) -> int:
        """How many instances there have been."""
        return len(self.scene.world.fleets.launches)

    @property
    def bought(self) -> int:
        """How many nodes the update has bought."""
        return self.launches() - self.before

    def rests(self) -> list[Cause]:
        """What the verdict says of updates that rest."""
        return [c for c in verdict_of(self.board).causes if c.kind == "update-rests"]


def test_update_that_frees_no_node_rests_and_is_reported() -> None:
    """It bought two nodes for each old one, then stood still for a day under the verdict OK."""
    life = RefusedUpdate()
    life.process.run_for(HOUR)
    assert life.bought == 2
    assert {update.state for (update,) in life.updates[-5:]} == {"resting"}
    (cause,) = life.rests()
    assert cause.level == "limited"
    life.process.sleep_seconds = lambda: 5 * MINUTE
    life.process.run_for(5 * HOUR)
    assert life.bought == 4, "a rest is twice as long as the one before"
    assert life.rests()
    assert life.scene.laws.broken == []


@pytest.mark.parametrize("resumed", [True, False])
def test_update_goes_on_after_its_rest_or_a_resume(resumed: bool) -> None:
    """Whoever has fixed the webhook would wait for a day."""
    life = RefusedUpdate()
    life.process.run_for(HOUR)
    life.refuses = False
    if resumed:
        life.scene.world.lease_annotations[RESUME_UPDATE] = FLEET
        life.process.run_for(10 * MINUTE)
        assert life.bought > 2
        assert life.rests() == []
    life.process.run_for(2 * HOUR)
    assert life.updates[-1] == ()
    assert life.bought == 2 + NODES
    assert life.scene.laws.broken == []
