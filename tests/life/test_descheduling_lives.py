"""Random clusters with every policy of the descheduler on: they come to rest."""

from dataclasses import replace
from random import Random  # noqa: TID251 - lives are named by their seed
from typing import Literal

import pytest

from reconciler.adapters.memory import Delays, MemoryWorld
from reconciler.model.cluster import Taint
from reconciler.model.frozen import FrozenMap
from reconciler.planner.descheduler_settings import (
    HighNodeUtilization,
    LowNodeUtilization,
    PolicyArguments,
)
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.simulation.process import Process
from tests.builders import make_fleet_settings
from tests.full_proofs import rounds
from tests.life.descheduled import HOUR, LOW, Evictions, apps, settings_of
from tests.life.stage import shape_of

EFFECTS: tuple[Literal["NoSchedule", "PreferNoSchedule"], ...] = ("NoSchedule", "PreferNoSchedule")
FLEET = make_fleet_settings(
    min_capacity=4,
    max_capacity=8,
    scale_in=ScaleInSettings(idle_threshold_seconds=300, unneeded_seconds=300, settle_seconds=120),
)
DEVIATION = LowNodeUtilization(
    thresholds={"cpu": 10}, target_thresholds={"cpu": 10}, deviation=True
)
HIGH = HighNodeUtilization(thresholds={"cpu": 30})


def life(seed: int) -> tuple[Evictions, float]:
    """One random cluster over some hours, with a new process every 10 minutes."""
    rng = Random(seed)
    fleet = replace(FLEET, min_capacity=rng.randint(2, 5))
    balancing: tuple[PolicyArguments, ...] = (LOW, DEVIATION, HIGH)
    more = rng.choice(balancing)
    world = MemoryWorld(
        cluster="c",
        delays=Delays(modify=1, launch=2, join=2, pod_stop=2, pod_start=2),
        scoring="least-allocated",
    )
    world.add_fleet(shape_of(fleet, fleet.regions[0]), rng.randint(fleet.min_capacity, 5))
    world.advance(HOUR)
    for node in world.nodes():
        if rng.random() < 0.3:
            effect = rng.choice(EFFECTS)
            world.objects.nodes[node.name] = replace(
                node, taints=(Taint(key="team", value="a", effect=effect),)
            )
        elif rng.random() < 0.5:
            labels = FrozenMap({**node.labels, "colour": "blue"})
            world.objects.nodes[node.name] = replace(node, labels=labels)
    names = [str(node.name) for node in world.nodes()]
    for pod in list(apps(rng, names, world)):
        world.add_pod(pod)
    evictions = Evictions()
    for _ in range(15):
        process = Process(world, settings_of(fleet, more))
        process.sleep_seconds = lambda: 120.0
        process.plan_hooks.append(evictions.hear)
        process.run_for(600)
    return evictions, world.clock.now().timestamp()


# 640: three policies sent three replicas round a ring of nodes at every interval.
@pytest.mark.parametrize("seed", [*range(rounds(8, 640)), *range(640, rounds(641, 1000))])
def test_cluster_with_every_policy_comes_to_rest(seed: int) -> None:
    """Policies that undo each other, or kube-scheduler, would evict pods for ever."""
    evictions, end = life(seed)
    assert evictions.too_soon() == []
    assert end - evictions.last > HOUR, evictions.at
