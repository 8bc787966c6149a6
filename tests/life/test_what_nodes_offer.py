"""Nodes that offer less than the config lets expect: what was found out once is not forgotten."""

from dataclasses import replace

from tests.builders import HOME, amounts
from tests.life.programs import Config
from tests.life.scenarios import Scene

LASTS_SECONDS = 7200.0
"""Time for a dozen purchases, each followed by its idle time."""


def test_node_that_turned_out_too_small_is_bought_in_vain_only_once() -> None:
    """Consolidation would ask for it, see it, end it as idle and ask again, every few minutes."""
    scene = Scene(Config(unhurried=True, consolidation=True), departed=False)
    small = scene.stage.fleets["primary-small", HOME]
    record = scene.world.fleets.records[small]
    record.shape = replace(record.shape, allocatable=amounts(cpu="3700m", memory="15Gi", pods=20))
    scene.set_target("primary-large", 1)
    scene.world.advance(90)
    scene.pods("web", "3800m")
    scene.stage.process.run_for(LASTS_SECONDS)
    asked = [change[2:] for change in scene.laws.changes if change[1] == small]
    assert asked == [(0, 1), (1, 0)]
    assert scene.end()["nodes"] == {"primary-large": 1}
