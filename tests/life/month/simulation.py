"""The month itself: the real loop on the in-memory world, fed with the trace."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from statistics import quantiles
from time import process_time

from reconciler.adapters.memory import Scoring
from reconciler.adapters.memory.faults import Call
from reconciler.model.cluster import Owner, Pod, PodSpec
from reconciler.model.demand import BudgetDemand, Demand, PodDemand
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import InstanceId, NodeName, PodKey
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.settings import PlannerSettings
from reconciler.records.demand import folded
from reconciler.simulation.chances import Chances
from reconciler.simulation.process import Process
from reconciler.simulation.simulation import Options, Simulation
from tests.builders import (
    make_fleet_settings,
    make_settings,
    make_spec,
    selecting,
)
from tests.life.month.bound import Interval
from tests.life.month.trace import DAY, Arrival

IDLE_SECONDS = 600.0
"""`idle_threshold` and `unneeded_time`, the defaults."""
SLEEP_SECONDS = 300.0
"""The longest pause between cycles; changes wake the loop."""
BOOT_SECONDS = 50.0
"""From the launch to a Ready node."""
FINISHED_KEPT_SECONDS = 1200.0
"""How long a finished Job's pod is kept. One that goes before `idle_threshold` takes with it when
its node became idle, and the wait begins again (docs/scale-in.md)."""
SIZES = {"services": (8, 32), "ci": (8, 32), "batch": (32, 128)}
"""CPU and GiB of the one size of each sector."""
USD_PER_CPU = 0.048
START = datetime(2026, 3, 1, tzinfo=UTC)
CHANCES = Chances(
    launch_median_seconds=20, launch_sigma=0, join_median_seconds=30, join_sigma=0,
    interruptions_per_hour=0, capacity_errors_per_day=0,
)  # fmt: skip
"""Nothing is left to chance: a bound for a clairvoyant is what the month is compared with."""


def capacity(sector: str) -> tuple[int, int]:
    """CPU milli and MiB of a node."""
    cpu, gib = SIZES[sector]
    return cpu * 1000, gib * 1024


def month_settings(*, moves: bool = True) -> PlannerSettings:
    """Three sectors of one fleet each; the config's defaults, consolidation on.

    Args:
        moves: Whether nodes with pods may be emptied; else only empty ones end.
    """
    scale_in = ScaleInSettings(
        idle_threshold_seconds=IDLE_SECONDS,
        unneeded_seconds=IDLE_SECONDS,
        non_empty_at_once_max=int(moves),
    )
    fleets = [
        make_fleet_settings("node", sector, cpu=cpu, memory=f"{gib}Gi", pods=110,
                            price=str(round(cpu * USD_PER_CPU, 3)), scale_in=scale_in)
        for sector, (cpu, gib) in SIZES.items()
    ]  # fmt: skip
    return make_settings(*fleets, consolidation=moves, search_budget_seconds=0.0)


@dataclass(slots=True)
class Outcome:
    """What came of the month."""

    seconds: float
    intervals: dict[str, list[Interval]] = field(default_factory=dict)
    """Every pod on every node that it ran on, by sector."""
    nodes: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Every instance from launch to end, by sector."""
    idle: list[float] = field(default_factory=list)
    """How long each node that was ended had been without a pod that counts."""
    waits: list[float] = field(default_factory=list)
    """From a pod's creation to its node."""
    evictions: int = 0
    protected_evictions: int = 0
    jobs_lost: int = 0
    unbound: int = 0
    cycles: int = 0
    pods: int = 0
    cpu_seconds: float = 0.0

    def wait(self, share: float) -> float:
        """A percentile of the waits; `share` in hundredths."""
        return quantiles(self.waits, n=100)[round(share) - 1]


class Month:
    """One run: the product's simulation, watched more closely than its reports need.

    Args:
        arrivals: The workload.
        days: How long.
        scoring: How pods are spread over nodes.
        moves: Whether nodes with pods may be emptied.
    """

    def __init__(
        self,
        arrivals: list[Arrival],
        days: float,
        scoring: Scoring = "most-allocated",
        *,
        moves: bool = True,
    ) -> None:
        options = Options(
            days=days, sleep_seconds=SLEEP_SECONDS, calm_seconds=0.0, scoring=scoring,
            finished_kept_seconds=FINISHED_KEPT_SECONDS, chances=CHANCES,
        )  # fmt: skip
        self._simulation = Simulation(demand_of(arrivals), month_settings(moves=moves), options)
        self.world, process = self._simulation.world, self._simulation.process
        assert isinstance(process, Process), "no model of another autoscaler was asked for"
        process.plan_hooks.append(self._planned)
        self.outcome = Outcome(seconds=days * DAY, pods=0)
        self.world.objects.watchers.append(self._occupies)
        self.world.log.watchers.append(self._called)
        self._bound: dict[str, tuple[float, Pod]] = {}
        self._empty_since: dict[NodeName, float] = {}
        self._counts: Counter[NodeName] = Counter()

    @property
    def _now(self) -> float:
        return self.world.clock.monotonic_seconds()

    def _occupies(self, pod: Pod, begins: bool) -> None:
        """A pod begins or ceases to hold a node."""
        node = NodeName(str(pod.node_name))
        if begins:
            self._counts[node] += 1
            self._bound[pod.key.uid] = (self._now, pod)
            return
        self._counts[node] -= 1
        if not self._counts[node]:
            self._empty_since[node] = self._now
        begun, _ = self._bound.pop(pod.key.uid)
        self._note(pod, begun, self._now)

    def _note(self, pod: Pod, begun: float, end: float) -> None:
        shape = (pod.spec.requests["cpu"], pod.spec.requests["memory"] // 2**20)
        self.outcome.intervals.setdefault(pod.key.namespace, []).append(
            Interval(begin=begun, end=end, shape=shape)
        )

    def _planned(self, snapshot: Snapshot, _plan: Plan) -> None:
        for node in snapshot.cluster.nodes:
            self._empty_since.setdefault(node.name, self._now)

    def _called(self, call: Call) -> None:
        if call.operation == "evict_pod":
            key = call.arguments[0]
            pod = self.world.objects.find(key) if isinstance(key, PodKey) else None
            self.outcome.evictions += 1
            job = pod is not None and pod.owner is not None and pod.owner.kind == "Job"
            self.outcome.protected_evictions += int(job)
        elif call.operation == "terminate_instances":
            ended = {InstanceId(str(argument)) for argument in call.arguments}
            for node in self.world.nodes():
                if node.instance_id in ended:
                    self.outcome.idle.append(self._now - self._empty_since[node.name])

    def run(self) -> Outcome:
        """Play the whole month."""
        begin = process_time()
        result = self._simulation.run()
        found = self.outcome
        found.cpu_seconds = process_time() - begin
        found.cycles, found.pods = result.cycles, self._simulation.feeder.pods
        found.waits, found.jobs_lost = list(result.history.waits), result.jobs_ended_early
        found.unbound = result.history.waiting
        for begun, pod in self._bound.values():
            self._note(pod, begun, found.seconds)
        sectors = {fleet.name: fleet.sector for fleet in result.settings.fleets()}
        for launch in result.launches:
            lives = found.nodes.setdefault(sectors[launch.fleet], [])
            lives.append((launch.begin, launch.end))
        return found


def demand_of(arrivals: list[Arrival]) -> Demand:
    """The workload as demand: services that their owner deletes, Jobs that end by themselves."""
    pods = [_pod(number, arrival) for number, arrival in enumerate(arrivals)]
    return folded([*_budgets(arrivals), *pods])


def _pod(number: int, arrival: Arrival) -> PodDemand:
    at = START + timedelta(seconds=arrival.at)
    service = arrival.sector == "services"
    return PodDemand(
        at=at,
        id=f"{arrival.group}-{number}",
        namespace=arrival.sector,
        spec=_spec(arrival.sector, arrival.cpu_milli, arrival.memory_mib),
        controller=Owner(kind="ReplicaSet" if service else "Job", name=arrival.group),
        labels=FrozenMap({"app": arrival.group if service else "job"}),
        ran_seconds=None if service else arrival.seconds,
        until=at + timedelta(seconds=arrival.seconds) if service else None,
    )


@cache
def _spec(sector: str, cpu_milli: int, memory_mib: int) -> PodSpec:
    """One object for equal pods."""
    return make_spec(f"{cpu_milli}m", f"{memory_mib}Mi", sector=sector)


def _budgets(arrivals: list[Arrival]) -> list[BudgetDemand]:
    replicas = Counter(a.group for a in arrivals if a.sector == "services" and a.at == 0)
    away = {a.group: a.away_max for a in arrivals if a.away_max is not None}
    return [
        BudgetDemand(at=START, id=group, namespace="services", selector=selecting(app=group),
                     min_available=max(0, replicas[group] - (most or 0)))
        for group, most in sorted(away.items())
    ]  # fmt: skip
