"""Nodes that differ from what the config lets expect: nothing is bought in vain for ever."""

from dataclasses import replace
from typing import Any

from reconciler.model.cluster import Taint
from tests.builders import HOME, amounts
from tests.life.programs import Config
from tests.life.scene import Scene

LASTS_SECONDS = 7200.0
"""Time for a dozen purchases, each followed by its idle time."""


LESS = amounts(cpu="3700m", memory="15Gi", pods=20)


class Surprise:
    """A cheap fleet whose nodes come otherwise than the config says, and a dear node to replace."""

    def __init__(self) -> None:
        self.scene = Scene(Config(unhurried=True, consolidation=True), departed=False)
        self._small = self.scene.stage.fleets["primary-small", HOME]

    def come_as(self, **changed: Any) -> None:
        """From now on its nodes differ in fields of FleetShape."""
        record = self.scene.world.fleets.records[self._small]
        record.shape = replace(record.shape, **changed)

    def targets(self, cpu: str) -> list[tuple[int, int]]:
        """How the cheap fleet's target moves while a dear node runs a pod of so much CPU."""
        self.scene.set_target("primary-large", 1)
        self.scene.world.advance(90)
        self.scene.pods("web", cpu)
        self.scene.stage.process.run_for(LASTS_SECONDS)
        changes = self.scene.laws.changes
        return [(before, after) for _, fleet, before, after in changes if fleet == self._small]


def test_node_that_turned_out_too_small_is_bought_in_vain_only_once() -> None:
    """Consolidation would ask for it, see it, end it as idle and ask again, every few minutes."""
    surprise = Surprise()
    surprise.come_as(allocatable=LESS)
    assert surprise.targets("3800m") == [(0, 1), (1, 0)]
    assert surprise.scene.end()["nodes"] == {"primary-large": 1}


def test_node_that_turned_out_too_small_is_not_forgotten_beside_a_larger_one() -> None:
    """A fleet of several types, or with a node of an older image, is the usual case."""
    surprise = Surprise()
    surprise.scene.set_target("primary-small", 1)
    surprise.scene.world.advance(90)
    surprise.scene.pods("job", "3", kind="Job")
    surprise.scene.world.advance(5)
    surprise.come_as(allocatable=LESS)
    assert surprise.targets("3800m") == [(1, 2), (2, 1)]


def test_node_that_refuses_the_pods_is_bought_in_vain_twice() -> None:
    """A taint that the config does not know: a node would be bought every minute, for ever."""
    surprise = Surprise()
    surprise.come_as(taints=(Taint(key="team", value="x", effect="NoSchedule"),))
    targets = surprise.targets("3")
    assert sum(after > before for before, after in targets) == 2
    assert surprise.scene.end()["nodes"] == {"primary-large": 1}
