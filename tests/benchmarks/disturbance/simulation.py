"""The real loop on the in-memory world, with kube-scheduler's way of spreading pods."""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, assert_never

from reconciler.adapters.memory import BudgetShape, Delays, FleetShape, MemoryWorld
from reconciler.model.actions import DO_NOT_DISRUPT
from reconciler.model.cluster import Owner, Pod, PodSpec
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, PodKey
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.settings import FleetSettings, PlannerSettings
from reconciler.simulation.history import History
from reconciler.simulation.process import Process
from reconciler.simulation.program import Program, ProgramMaker
from tests.benchmarks.disturbance.workload import Scaled, Spreading, Started, events
from tests.builders import (
    HOME,
    labelled,
    make_fleet_settings,
    make_option,
    make_settings,
    make_spec,
    near,
    selecting,
    spread,
)

SECONDS = 720.0
"""Events end after 480; what is left is scale-in."""
SHAPES = {
    "c5.xlarge": (4, 8, "0.17"),
    "m5.xlarge": (4, 16, "0.192"),
    "m5.2xlarge": (8, 32, "0.384"),
    "r5.2xlarge": (8, 64, "0.504"),
    "c5.4xlarge": (16, 32, "0.68"),
    "m5.4xlarge": (16, 64, "0.768"),
}
"""CPU, GiB and on-demand USD per hour; 100m and 10Mi of each node are reserved."""
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
NAMESPACE = "work"
SOON_SECONDS = 60.0
DELAYS = Delays(launch=10, join=10, terminate=5, node_gone=10, pod_stop=1, pod_start=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What twelve minutes came to."""

    usd: float
    """What the nodes cost, from launch to end."""
    evicted: int
    """Pods of Deployments."""
    soon: int
    """Those of them that had been bound less than a minute before."""
    most_moves: int
    """Of one replica."""
    jobs_lost: int
    usd_per_hour_at_the_end: float
    peak_nodes: int
    wait_p95_seconds: float


class TwelveMinutes:
    """One run.

    Args:
        seed: Of the workload.
        scale_in: The settings of all fleets.
        make_program: What runs on them; None: the capacity loop.
    """

    def __init__(
        self, seed: int, scale_in: ScaleInSettings, make_program: ProgramMaker | None = None
    ) -> None:
        self.world = MemoryWorld(cluster="c", delays=DELAYS, scoring="least-allocated")
        self._prices: dict[FleetId, float] = {}
        fleets = [self._add_fleet(shape, zone, scale_in) for shape in SHAPES for zone in ZONES]
        settings = make_settings(*fleets, consolidation=True, search_budget_seconds=0.0)
        self.world.objects.watchers.append(self._occupies)
        self.world.objects.pod_watchers.append(self._changed)
        self._made = 0
        self._durations: dict[str, float] = {}
        self._bound_at: dict[str, float] = {}
        self._waits: list[float] = []
        self._moves: Counter[str] = Counter()
        self._soon = 0
        self._jobs_lost = 0
        self._begun_at = self._now
        for event in events(seed):
            self.world.clock.call_later(event.at, partial(self._happens, event))
        self._program = self._loop(settings) if make_program is None else make_program(
            self.world, settings, History(self.world)
        )  # fmt: skip

    def _loop(self, settings: PlannerSettings) -> Program:
        process = Process(self.world, settings)
        process.sleep_seconds = lambda: 10.0
        return process

    def _add_fleet(self, shape: str, zone: str, scale_in: ScaleInSettings) -> FleetSettings:
        cpu, gib, price = SHAPES[shape]
        resources = f"{1000 * cpu - 100}m", f"{1024 * gib - 10}Mi"
        option = make_option(shape, *resources, 110, price=price)
        size = shape.replace(".", "-")
        fleet = make_fleet_settings(
            size, "main", options=[option], spot=False, zone=zone, scale_in=scale_in
        )
        made = self.world.add_fleet(
            FleetShape(
                name=fleet.name,
                region=HOME,
                labels=fleet.labels,
                allocatable=option.resources,
                instance_type=shape,
                zone=zone,
                lifecycle="on-demand",
                tags=labelled(sector="main", size=size, Spot="false"),
            )
        )
        self._prices[made] = float(price)
        return fleet

    @property
    def _now(self) -> float:
        return self.world.clock.monotonic_seconds()

    def run(self) -> Outcome:
        """Play it, and sum up."""
        end = self._begun_at + SECONDS
        self._program.run_until(end)
        lives = [
            (at, self.world.fleets.ends.get(instance, end + 1), self._prices[fleet])
            for instance, fleet, at in self.world.fleets.launches
        ]
        marks = sorted([(at, 1) for at, _, _ in lives] + [(gone, -1) for _, gone, _ in lives])
        there = peak = 0
        for _, change in marks:
            there += change
            peak = max(peak, there)
        waits = sorted(self._waits)
        return Outcome(
            usd=sum(price * (min(gone, end) - at) / 3600 for at, gone, price in lives),
            evicted=self._moves.total(),
            soon=self._soon,
            most_moves=max(self._moves.values(), default=0),
            jobs_lost=self._jobs_lost,
            usd_per_hour_at_the_end=sum(price for _, gone, price in lives if gone > end),
            peak_nodes=peak,
            wait_p95_seconds=waits[ceil(0.95 * len(waits)) - 1],
        )

    def _happens(self, event: Scaled | Started) -> None:
        match event:
            case Scaled():
                self._scale(event)
            case Started():
                self._start(event)
            case _:
                assert_never(event)

    def _start(self, job: Started) -> None:
        spec = make_spec(f"{job.cpu_milli}m", f"{job.memory_mib}Mi")
        self._durations[job.name] = job.seconds
        for _ in range(job.pods):
            self._create("Job", job.name, spec, protected=job.protected)

    def _scale(self, to: Scaled) -> None:
        """As the ReplicaSet controller does: of too many, those go first that share a node."""
        there = [
            pod
            for pod in self.world.pods()
            if pod.owner is not None and pod.owner.name == to.name and not pod.deleting
        ]
        spec = _spec(to)
        for _ in range(to.replicas - len(there)):
            self._create("ReplicaSet", to.name, spec)
        sharing = Counter(pod.node_name for pod in there)
        there.sort(key=lambda p: (p.node_name is not None, -sharing[p.node_name], p.key.name))
        for pod in there[: max(0, len(there) - to.replicas)]:
            self.world.remove_pod(pod.key)
        if to.away_max is not None:
            self.world.add_budget(
                BudgetShape(namespace=NAMESPACE, name=to.name, selector=selecting(app=to.name),
                            min_available=max(0, to.replicas - to.away_max))
            )  # fmt: skip

    def _create(self, kind: str, owner: str, spec: PodSpec, *, protected: bool = False) -> None:
        self._made += 1
        name = f"{owner}-{self._made}"
        notes = {DO_NOT_DISRUPT: "true"} if protected else {}
        self.world.add_pod(
            Pod(
                key=PodKey(namespace=NAMESPACE, name=name),
                spec=spec,
                owner=Owner(kind=kind, name=owner, uid=name),
                labels=FrozenMap({"app": owner}),
                annotations=FrozenMap(notes),
            )
        )

    def _occupies(self, pod: Pod, begins: bool) -> None:
        """A pod begins or ceases to hold a node."""
        owner, clock = pod.owner, self.world.clock
        if owner is None:
            return
        if begins:
            self._bound_at[pod.key.uid] = self._now
            if pod.created_at is not None:
                self._waits.append((clock.now() - pod.created_at).total_seconds())
            if owner.kind == "Job":
                key = pod.key
                clock.call_later(self._durations[owner.name], lambda: self.world.finish_pod(key))
        elif owner.kind == "Job":
            left = self.world.objects.find(pod.key)
            self._jobs_lost += int(left is None or not left.finished)

    def _changed(self, before: Pod | None, after: Pod | None) -> None:
        """A pod of a Deployment is evicted: it begins to stop, and was not scaled away."""
        if before is None or after is None or before.deleting or not after.deleting:
            return
        if after.owner is not None and after.owner.kind == "ReplicaSet":
            self._moves[after.owner.uid] += 1
            bound_at = self._bound_at.get(after.key.uid, self._now)
            self._soon += int(self._now - bound_at < SOON_SECONDS)


def _spec(to: Scaled) -> PodSpec:
    rules: dict[Spreading, dict[str, Any]] = {
        "": {},
        "zones": {"topology_spread": (spread("topology.kubernetes.io/zone", app=to.name),)},
        "nodes": {"pod_anti_affinity": (near("kubernetes.io/hostname", app=to.name),)},
    }
    return make_spec(f"{to.cpu_milli}m", f"{to.memory_mib}Mi", **rules[to.spreading])
