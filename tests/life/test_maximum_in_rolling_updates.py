"""A rolling update at `max_capacity`: what EC2 is asked for (docs/rolling-updates.md)."""

from dataclasses import replace

import pytest

from reconciler.adapters.memory import Delays, MemoryWorld
from reconciler.adapters.memory.faults import Call
from reconciler.planner.disruption_settings import RollingUpdate
from reconciler.simulation.process import Process
from tests.builders import HOME, idle, make_fleet_settings, make_pod, make_settings
from tests.life.stage import shape_of

MOST = 3


@pytest.mark.parametrize("provider", ["ec2-fleet", "asg"])
def test_no_target_is_above_the_maximum_while_nodes_end(provider: str) -> None:
    """EC2 launches one too many before the target goes down, and a group refuses the call."""
    kept = idle(6000, utilization_threshold=0.0)
    fleet = make_fleet_settings("small", cpu=4, max_capacity=MOST, provider=provider, scale_in=kept)
    if provider == "asg":
        fleet = replace(fleet, auto_scaling_group=fleet.name)
    world = MemoryWorld(cluster="c", delays=Delays(), scoring="least-allocated")
    fleet_id = world.add_fleet(shape_of(fleet, HOME), MOST)
    update = RollingUpdate(min_in_service=1, batch_max=2)
    process = Process(world, make_settings(fleet, rolling_update=update), 0.3)
    process.sleep_seconds = lambda: 30.0
    for number in range(MOST):
        world.add_pod(make_pod(f"web-{number}", cpu="1900m"))
    asked: list[int] = []

    def note(call: Call) -> None:
        if call.operation == "set_target_capacity":
            asked.append(int(str(call.arguments[1])))

    world.log.watchers.append(note)
    process.run_for(900)
    world.change_template(fleet_id)
    process.run_for(3 * 3600)
    assert asked
    assert max(asked) <= MOST
