"""Random clusters with every policy of the descheduler on: they come to rest."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from random import Random  # noqa: TID251 - lives are named by their seed
from typing import Any, Literal

import pytest

from reconciler.adapters.memory import Delays, MemoryWorld
from reconciler.model.actions import EvictPod
from reconciler.model.cluster import Owner, Pod, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.descheduler_settings import (
    DeschedulerSettings,
    FailedPods,
    HighNodeUtilization,
    InterPodAntiAffinity,
    LowNodeUtilization,
    NodeAffinity,
    NodeTaints,
    PodLifeTime,
    PolicyArguments,
    Profile,
    RemoveDuplicates,
    TooManyRestarts,
    TopologySpread,
)
from reconciler.planner.settings import FleetSettings, PlannerSettings, ScaleInSettings
from reconciler.simulation.process import Process
from tests.builders import HOSTNAME, make_fleet_settings, make_pod, make_settings, near, requiring
from tests.builders import spread as evenly
from tests.life.stage import shape_of

INTERVAL_SECONDS = 300.0
HOUR = 3600.0
EFFECTS: tuple[Literal["NoSchedule", "PreferNoSchedule"], ...] = ("NoSchedule", "PreferNoSchedule")
FLEET = make_fleet_settings(
    min_capacity=4,
    max_capacity=8,
    scale_in=ScaleInSettings(idle_threshold_seconds=300, unneeded_seconds=300, settle_seconds=120),
)
EVERY: tuple[PolicyArguments, ...] = (
    FailedPods(),
    TooManyRestarts(threshold=10),
    PodLifeTime(seconds_max=5.5 * HOUR),
    NodeTaints(prefer_no_schedule=True),
    NodeAffinity(preferred=True),
    InterPodAntiAffinity(),
    RemoveDuplicates(),
    TopologySpread(soft=True),
)
LOW = LowNodeUtilization(
    thresholds={"cpu": 20, "memory": 20}, target_thresholds={"cpu": 50, "memory": 50}
)
DEVIATION = LowNodeUtilization(
    thresholds={"cpu": 10}, target_thresholds={"cpu": 10}, deviation=True
)
HIGH = HighNodeUtilization(thresholds={"cpu": 30})


def settings_of(fleet: FleetSettings, *more: PolicyArguments) -> PlannerSettings:
    """Settings with every policy on."""
    profile = Profile(policies=(*EVERY, *more))
    descheduler = DeschedulerSettings(profiles=(profile,), interval_seconds=INTERVAL_SECONDS)
    return replace(make_settings(fleet), descheduler=descheduler)


def apps(rng: Random, nodes: list[str], world: MemoryWorld) -> Iterator[Pod]:
    """Pods of a few apps, all over the place and some of them where they should not be."""
    for app in range(rng.randint(2, 5)):
        name = f"app{app}"
        labels = {"app": name}
        rules: dict[str, Any] = rng.choice(
            [
                {},
                {},
                {"pod_anti_affinity": (near(HOSTNAME, app=name),)},
                {"topology_spread": (evenly(HOSTNAME, rng.randint(1, 2), app=name),)},
                {"node_affinity": requiring("colour", "In", "blue")},
            ]
        )
        crowd = rng.sample(nodes, rng.randint(1, len(nodes)))
        owner = Owner(kind=rng.choice(["ReplicaSet", "StatefulSet"]), name=name, uid=name)
        cpu = f"{rng.choice([100, 250, 500, 900])}m"
        for number in range(rng.randint(1, 5)):
            age = timedelta(seconds=rng.choice([60.0, HOUR, 6 * HOUR]))
            born = world.clock.now() - age
            yield make_pod(
                f"{name}-{number}",
                node=rng.choice(crowd),
                cpu=cpu,
                memory=f"{rng.choice([64, 512, 2048])}Mi",
                labels=labels,
                owner=owner,
                ready=True,
                created_at=born,
                started_at=born,
                phase=rng.choice(["Running"] * 9 + ["Failed"]),
                restarts=rng.choice([0] * 9 + [20]),
                priority=rng.choice([0, 0, 10]),
                **rules,
            )


class Evictions:
    """What the descheduler evicts in a life, by the pod that a controller makes again."""

    def __init__(self, process_at: float = 0.0) -> None:
        self.at: dict[str, list[float]] = {}
        self.last = process_at

    def hear(self, snapshot: Snapshot, made: Plan) -> None:
        """Note the evictions of a plan."""
        now = snapshot.at.timestamp()
        for action in made.actions:
            if isinstance(action, EvictPod) and action.policy == "deschedule":
                self.at.setdefault(action.pod.name.rsplit("-r", 1)[0], []).append(now)
                self.last = now

    def too_soon(self) -> list[str]:
        """The pods that were evicted twice within the interval."""
        return [
            name
            for name, times in self.at.items()
            if any(b - a < INTERVAL_SECONDS for a, b in pairwise(times))
        ]


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


@pytest.mark.parametrize("seed", range(8))
def test_cluster_with_every_policy_comes_to_rest(seed: int) -> None:
    """Policies that undo each other, or kube-scheduler, would evict pods for ever."""
    evictions, end = life(seed)
    assert evictions.too_soon() == []
    assert end - evictions.last > HOUR, evictions.at
