"""Spot return while EC2 takes seconds from a new target to the first instance."""

from dataclasses import replace

import pytest

from reconciler.model.actions import TerminateInstance
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from tests.life.scenarios import SCENARIOS


@pytest.mark.parametrize("seconds", [1.0, 15.0])
def test_stand_in_returns_although_its_spot_node_is_launched_seconds_later(seconds: float) -> None:
    """The missing instance ended the batch that had asked for it, in every hour."""
    scenario = next(each for each in SCENARIOS if each.name == "spot is back")
    config = replace(scenario.config, fulfil_seconds=seconds)
    scene = replace(scenario, config=config).begin()
    ended: list[str] = []

    def note(_: Snapshot, made: Plan) -> None:
        ended.extend(a.policy for a in made.actions if isinstance(a, TerminateInstance))

    scene.stage.process.plan_hooks.append(note)
    scene.stage.process.run_for(1500)
    fleets = {node.labels.get("fleet") for node in scene.world.nodes() if node.instance_id}
    assert fleets == {"primary-small"}
    assert ended.count("spot-return") == 1
