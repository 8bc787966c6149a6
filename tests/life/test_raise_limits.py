"""What `raise_limits` allow within an hour, over many cycles and a restart of the program."""

from reconciler.adapters.memory import MemoryWorld
from reconciler.model.plan import Plan
from reconciler.planner.settings import Headroom, RaiseLimits
from reconciler.simulation.process import Process
from tests.builders import HOME, idle, make_fleet_settings, make_pod, make_settings
from tests.life.stage import shape_of

FLEET = make_fleet_settings(cpu=4, memory="16Gi", scale_in=idle(60_000))
SETTINGS = make_settings(
    FLEET,
    headroom=(Headroom(sector="primary", nodes=12),),
    raise_limits=RaiseLimits(nodes_per_cycle=2, nodes_per_hour=4),
)


def test_headroom_comes_in_portions_of_an_hour_that_pods_share() -> None:
    """Twelve nodes came within ten seconds, and a restart would have begun anew."""
    world = MemoryWorld(cluster="c")
    fleet = world.add_fleet(shape_of(FLEET, HOME), 1)
    world.advance(120)
    Process(world, SETTINGS).run_for(600)
    assert world.target(fleet) == 5
    for number in range(6):
        world.add_pod(make_pod(f"pod-{number}", cpu="3500m", sector="primary"))
    following = Process(world, SETTINGS)
    made: list[Plan] = []
    following.plan_hooks.append(lambda _, each: made.append(each))
    following.run_for(2400)
    assert world.target(fleet) == 5
    assert (sum(r.nodes for r in made[-1].raises), made[-1].raise_nodes_left) == (4, 0)
    assert [reason.code for u in made[-1].unplaceable for reason in u.reasons] == ["raise-limit"]
    following.run_for(1500)
    assert world.target(fleet) == 9
    assert made[-1].unplaceable == ()
