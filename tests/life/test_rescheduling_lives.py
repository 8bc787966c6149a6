"""Random clusters with spot rescheduler, descheduler, scale-in and consolidation: they rest."""

from dataclasses import replace
from random import Random  # noqa: TID251 - lives are named by their seed

import pytest

from reconciler.adapters.memory import Delays, MemoryWorld
from reconciler.model.actions import EvictPod, SetCapacity, TaintNode, TerminateInstance
from reconciler.model.cluster import Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.settings import FleetSettings, PlannerSettings
from reconciler.simulation.process import Process
from tests.builders import make_fleet_settings
from tests.full_proofs import rounds
from tests.life.descheduled import HOUR, LOW, Evictions, apps, settings_of
from tests.life.stage import SPOT_RESCHEDULER, shape_of

LIVES = rounds(6, 1000)
PREFERS_SPOT = Taint(key="lifecycle", value="OnDemand", effect="PreferNoSchedule")


class Moves(Evictions):
    """What moves pods or nodes in a life, whoever decides it."""

    def __init__(self) -> None:
        super().__init__()
        self.moved_at = 0.0
        self.policies: set[str] = set()
        """Those that evicted pods."""

    def hear(self, snapshot: Snapshot, made: Plan) -> None:
        """Note the evictions of the descheduler, and the time of everything else."""
        super().hear(snapshot, made)
        for action in made.actions:
            soft = isinstance(action, TaintNode) and action.taint.effect == "PreferNoSchedule"
            if isinstance(action, SetCapacity | TerminateInstance | EvictPod | TaintNode):
                self.moved_at = self.moved_at if soft else snapshot.at.timestamp()
            if isinstance(action, EvictPod):
                self.policies.add(action.policy)


def fleets_of(rng: Random) -> tuple[FleetSettings, ...]:
    """A spot fleet and an on-demand fleet of one sector, with the taint perhaps."""
    scale_in = ScaleInSettings(
        idle_threshold_seconds=300,
        unneeded_seconds=300,
        settle_seconds=120,
        consolidate_after_seconds=300,
        utilization_threshold=rng.choice([0.3, 0.5]),
    )
    taints = rng.choice([(PREFERS_SPOT,), (PREFERS_SPOT,), ()])
    made = []
    for size, spot, price in (("small", True, "0.1"), ("steady", False, "0.3")):
        fleet = make_fleet_settings(size, spot=spot, price=price, max_capacity=6, scale_in=scale_in)
        labels = FrozenMap({**fleet.labels, "lifecycle": "Ec2Spot" if spot else "OnDemand"})
        made.append(replace(fleet, labels=labels, taints=() if spot else taints))
    return tuple(made)


def settings(rng: Random, fleets: tuple[FleetSettings, ...]) -> PlannerSettings:
    """Everything that moves pods is on; the descheduler balances in some lives."""
    first = settings_of(fleets[0], *rng.choice([(), (LOW,)]))
    sector = replace(first.sectors[0], fleets=fleets)
    return replace(
        first,
        sectors=(sector, *first.sectors[1:]),
        consolidation=True,
        spot_rescheduler=replace(SPOT_RESCHEDULER, node_drain_delay_seconds=120),
    )


def life(seed: int) -> tuple[Moves, float]:
    """One random cluster over some hours, with a new process every 10 minutes."""
    rng = Random(seed)
    fleets = fleets_of(rng)
    world = MemoryWorld(
        cluster="c",
        delays=Delays(modify=1, launch=2, join=2, pod_stop=2, pod_start=2),
        scoring="least-allocated",
    )
    for fleet in fleets:
        world.add_fleet(shape_of(fleet, fleet.regions[0]), rng.randint(1, 4))
    world.advance(HOUR)
    for node in world.nodes():
        if rng.random() < 0.4:
            labels = FrozenMap({**node.labels, "colour": "blue"})
            world.objects.nodes[node.name] = replace(node, labels=labels)
    names = [str(node.name) for node in world.nodes()]
    for pod in list(apps(rng, names, world)):
        world.add_pod(pod)
    moves, made = Moves(), settings(rng, fleets)
    for _ in range(18):
        process = Process(world, made)
        process.sleep_seconds = lambda: 60.0
        process.plan_hooks.append(moves.hear)
        process.run_for(600)
    return moves, world.clock.now().timestamp()


@pytest.mark.timeout(0)
def test_clusters_in_which_everything_moves_pods_come_to_rest(closing_lines: list[str]) -> None:
    """What one of them moves another could move back for as long as the cluster exists."""
    moved: set[str] = set()
    restless: dict[int, object] = {}
    for seed in range(LIVES):
        moves, end = life(seed)
        moved |= moves.policies
        if moves.too_soon() or end - moves.moved_at < HOUR / 2:
            restless[seed] = (moves.too_soon(), end - moves.moved_at)
    closing_lines.append(f"lives with everything that moves pods: {LIVES}")
    assert restless == {}
    assert {"deschedule", "spot-reschedule", "scale-in"} <= moved
