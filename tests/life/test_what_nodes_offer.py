"""Nodes that differ from what the config lets expect: nothing is bought in vain for ever."""

from dataclasses import replace

from reconciler.model.cluster import Taint
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


def test_node_that_turned_out_too_small_is_not_forgotten_beside_a_larger_one() -> None:
    """A fleet of several types, or with a node of an older image, is the usual case."""
    scene = Scene(Config(unhurried=True, consolidation=True), departed=False)
    small = scene.stage.fleets["primary-small", HOME]
    record = scene.world.fleets.records[small]
    scene.set_target("primary-small", 1)
    scene.world.advance(90)
    scene.pods("job", "3", kind="Job")
    scene.world.advance(5)
    record.shape = replace(record.shape, allocatable=amounts(cpu="3700m", memory="15Gi", pods=20))
    scene.set_target("primary-large", 1)
    scene.world.advance(90)
    scene.pods("web", "3800m")
    scene.stage.process.run_for(LASTS_SECONDS)
    asked = [change[2:] for change in scene.laws.changes if change[1] == small]
    assert asked == [(1, 2), (2, 1)]


def test_node_that_refuses_the_pods_is_bought_in_vain_twice() -> None:
    """A taint that the config does not know: a node would be bought every minute, for ever."""
    scene = Scene(Config(unhurried=True, consolidation=True), departed=False)
    small = scene.stage.fleets["primary-small", HOME]
    record = scene.world.fleets.records[small]
    taint = Taint(key="team", value="x", effect="NoSchedule")
    record.shape = replace(record.shape, taints=(taint,))
    scene.set_target("primary-large", 1)
    scene.world.advance(90)
    scene.pods("web", "3")
    scene.stage.process.run_for(LASTS_SECONDS)
    targets = [change[2:] for change in scene.laws.changes if change[1] == small]
    assert sum(after > before for before, after in targets) == 2
    assert scene.end()["nodes"] == {"primary-large": 1}
