"""Where EC2 took spot instances back, over a restart of the program."""

from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.simulation.process import Process
from tests.life.scenarios import SCENARIOS


def test_next_process_knows_where_an_instance_was_taken_back_for_half_an_hour() -> None:
    """A restart in the middle of a storm would buy from the pools that are being emptied."""
    scene = next(s for s in SCENARIOS if s.name.endswith("with notice")).begin()
    scene.stage.process.run_for(300)
    following = Process(scene.world, scene.stage.process.settings)
    seen: list[Plan] = []

    def note(_snapshot: Snapshot, plan: Plan) -> None:
        seen.append(plan)

    following.plan_hooks.append(note)
    following.run_for(60)
    assert [(p.instance_type, p.zone) for p in seen[0].interrupted_pools] == [
        ("small.type", "us-west-2a")
    ]
    following.run_for(1800)
    assert seen[-1].interrupted_pools == ()
    assert "interrupted_pools" not in "".join(scene.world.lease_annotations.values())
