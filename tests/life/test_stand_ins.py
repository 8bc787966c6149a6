"""On-demand nodes that stand in for spot nodes, from the shortage until after it."""

from dataclasses import replace
from itertools import pairwise

import pytest

from reconciler.model.actions import FALLBACK_FROM, SPOT_RETURN, AnnotateNode
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.disruption_settings import DisruptionBudget, SpotReturn
from tests.builders import HOME
from tests.life.programs import Config
from tests.life.scenarios import SCENARIOS
from tests.life.scene import Scene

HOUR = 3600.0


def test_nodes_bought_in_a_shortage_stay_marked_when_it_is_over() -> None:
    """What the shortage costs would be forgotten with the fleet's rest, or with a restart."""
    scene = next(s for s in SCENARIOS if s.name.startswith("capacity errors")).begin()
    assert scene.run(240)
    nodes = [n for n in scene.world.nodes() if n.labels.get("fleet") == "primary-steady"]
    assert nodes
    assert {n.annotations.get(FALLBACK_FROM) for n in nodes} == {"primary-small"}


def test_nodes_bought_in_a_shortage_go_back_when_spot_is_back() -> None:
    """Every pod moves once, and its new node is there before."""
    scene = next(s for s in SCENARIOS if s.name == "spot is back").begin()
    scene.stage.process.run_for(110)
    fleets = [n.labels.get("fleet") for n in scene.world.nodes() if FALLBACK_FROM in n.annotations]
    assert fleets == ["primary-steady"]
    assert scene.run(500)
    assert {n.labels.get("fleet") for n in scene.world.nodes() if n.instance_id} == {
        "primary-small"
    }
    assert len(scene.laws.evictions) == 2


class Returning:
    """Five on-demand nodes bought while spot capacity is short, with two batches' budget."""

    SPOT = "primary-small", "primary-large"

    def __init__(self) -> None:
        self.scene = Scene(Config(unhurried=True, spot_return=True), departed=False)
        self.process = self.scene.stage.process
        self.process.settings = replace(
            self.process.settings,
            spot_return=SpotReturn(stable_seconds=HOUR / 2),
            disruption_budgets=(DisruptionBudget(nodes=2),),
        )
        self.process.sleep_seconds = lambda: 60.0
        self.batches: list[tuple[float, int]] = []
        """When a batch began, and how many nodes it has."""
        self.cost: list[tuple[float, float]] = []
        """What the stand-ins cost more per hour, over time."""
        self.most_disrupted = 0
        self.process.plan_hooks.append(self._planned)

    def refuse(self, code: str | None) -> None:
        """EC2 has no spot capacity from now on, or has it again."""
        for name in self.SPOT:
            self.scene.world.refuse_launches(self.scene.stage.fleets[name, HOME], code)

    def _planned(self, snapshot: Snapshot, made: Plan) -> None:
        marks = [n for n in snapshot.cluster.nodes if SPOT_RETURN in n.annotations]
        self.most_disrupted = max(self.most_disrupted, len(marks))
        marked = [a for a in made.actions if isinstance(a, AnnotateNode) and a.key == SPOT_RETURN]
        begun = sum(a.value is not None for a in marked)
        if begun:
            self.batches.append((self.process.now, begun))
        extra = sum(each.extra_hourly_usd for each in made.stand_ins)
        self.cost.append((self.process.now, extra))

    def fleets(self) -> dict[str, int]:
        """How many nodes each fleet has."""
        found: dict[str, int] = {}
        for node in self.scene.world.nodes():
            if node.instance_id:
                found[node.labels["fleet"]] = found.get(node.labels["fleet"], 0) + 1
        return found


def test_stand_ins_go_back_in_batches_an_hour_apart_and_stay_there() -> None:
    """All at once would move every pod on the day on which spot is least certain."""
    life = Returning()
    life.refuse("InsufficientInstanceCapacity")
    life.scene.pods("web", "3", 5)
    life.process.run_for(600)
    assert life.fleets() == {"primary-steady": 5}
    dear = life.cost[-1][1]
    life.refuse(None)
    spot_back_at = life.process.now
    life.process.run_for(5 * HOUR)
    assert life.fleets() == {"primary-small": 5}
    assert [nodes for _, nodes in life.batches] == [2, 2, 1]
    times = [at for at, _ in life.batches]
    assert times[0] - spot_back_at > HOUR / 2 - 600
    assert all(later - before >= HOUR for before, later in pairwise(times))
    assert life.most_disrupted == 2
    assert dear == pytest.approx(5 * (0.3 - 0.1))
    assert life.cost[-1][1] == 0
    assert len(life.scene.laws.evictions) == 5
    assert life.scene.laws.broken == []


def test_shortage_that_lasts_moves_no_pod_and_begins_no_batch() -> None:
    """EC2 goes on trying to fulfil the spot fleet's target: each refusal is an error of its own."""
    life = Returning()
    life.refuse("InsufficientInstanceCapacity")
    life.scene.pods("web", "3", 5)
    life.process.run_for(6 * HOUR)
    assert life.batches == []
    assert life.scene.laws.evictions == []
    assert life.fleets() == {"primary-steady": 5}
    life.refuse(None)
    life.process.run_for(6 * HOUR)
    assert life.fleets() == {"primary-small": 5}
    assert len(life.scene.laws.evictions) == 5
    assert life.scene.laws.broken == []
