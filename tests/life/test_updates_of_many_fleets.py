"""New images for many fleets at a time, one node emptied at a time (docs/rolling-updates.md)."""

from reconciler.adapters.memory import Delays, MemoryWorld
from reconciler.model.actions import ROLLING_UPDATE, AnnotateNode, SetCapacity
from reconciler.model.outcome import Outcome
from reconciler.planner.disruption_settings import RollingUpdate
from reconciler.simulation.process import Process
from tests.builders import HOME, idle, make_fleet_settings, make_pod, make_settings
from tests.life.stage import shape_of

FLEETS = 14
NODES = 2 * FLEETS


def test_update_of_many_fleets_asks_for_one_new_node_per_old_one() -> None:
    """Nodes left their batches behind the drains of others, and new ones had come for nothing."""
    kept = idle(6000, utilization_threshold=0.0)
    fleets = [
        make_fleet_settings("small", f"s{i:02}", scale_in=kept, min_capacity=i % 2 * 2)
        for i in range(FLEETS)
    ]
    delays = Delays(launch=20, join=40, pod_stop=90, pod_start=10)
    world = MemoryWorld(cluster="c", delays=delays, scoring="least-allocated")
    ids = [world.add_fleet(shape_of(fleet, HOME), 0) for fleet in fleets]
    update = RollingUpdate(batch_max=1, pause_seconds=60, canary_seconds=300)
    process = Process(world, make_settings(*fleets, rolling_update=update), 0.0)
    process.sleep_seconds = lambda: 30.0
    for fleet in fleets:
        for number in range(2):
            name = f"{fleet.sector}-{number}"
            world.add_pod(
                make_pod(name, cpu="3", sector=fleet.sector, termination_grace_seconds=120)
            )
    process.run_for(900)
    old = {node.name for node in world.nodes()}
    assert len(old) == NODES
    left: list[str] = []
    asked: list[str] = []

    def note(outcome: Outcome) -> None:
        match outcome.action:
            case AnnotateNode(key=key, value=None, node=node) if key == ROLLING_UPDATE:
                left.append(node)
            case SetCapacity(fleet=fleet, from_capacity=known, to_capacity=wanted):
                asked.extend([fleet] * (wanted - known))
            case _:
                pass

    process.outcome_hooks.append(note)
    for each in ids:
        world.change_template(each)
    process.run_for(2 * 3600)
    assert left == [], "no node leaves its batch"
    assert len(asked) == NODES, "also at a minimum one new node is asked for per old one"
    assert old.isdisjoint(node.name for node in world.nodes())
    assert len(world.nodes()) == NODES, "no new node has come for nothing"
