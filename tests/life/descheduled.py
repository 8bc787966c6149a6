"""Clusters whose pods the descheduler moves: its policies, random apps, what is evicted."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from random import Random  # noqa: TID251 - lives are named by their seed
from typing import Any

from reconciler.adapters.memory import MemoryWorld
from reconciler.model.actions import EvictPod
from reconciler.model.cluster import Owner, Pod
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.descheduler_settings import (
    DeschedulerSettings,
    FailedPods,
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
from reconciler.planner.settings import FleetSettings, PlannerSettings
from tests.builders import HOSTNAME, make_pod, make_settings, near, requiring
from tests.builders import spread as evenly

INTERVAL_SECONDS = 300.0
HOUR = 3600.0
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
