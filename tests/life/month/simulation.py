"""The month itself: the real loop on the in-memory world, fed with the trace."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import quantiles
from time import process_time

from reconciler.adapters.memory import BudgetShape, Delays, FleetShape, MemoryWorld, Scoring
from reconciler.adapters.memory.faults import Call
from reconciler.model.cluster import Owner, Pod, PodSpec
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import PlannerSettings, ScaleInSettings
from reconciler.simulation.process import Process
from tests.builders import (
    HOME,
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
its node became idle, and the wait begins anew (docs/scale-in.md)."""
SIZES = {"services": (8, 32), "ci": (8, 32), "batch": (32, 128)}
"""CPU and GiB of the one size of each sector."""
USD_PER_CPU = 0.048
START = datetime(2026, 3, 1, tzinfo=UTC)


def capacity(sector: str) -> tuple[int, int]:
    """CPU milli and MiB of a node."""
    cpu, gib = SIZES[sector]
    return cpu * 1000, gib * 1024


def month_settings() -> PlannerSettings:
    """Three sectors of one fleet each; the config's defaults, consolidation on."""
    scale_in = ScaleInSettings(idle_threshold_seconds=IDLE_SECONDS, unneeded_seconds=IDLE_SECONDS)
    fleets = [
        make_fleet_settings("node", sector, cpu=cpu, memory=f"{gib}Gi", pods=110,
                            price=str(round(cpu * USD_PER_CPU, 3)), scale_in=scale_in)
        for sector, (cpu, gib) in SIZES.items()
    ]  # fmt: skip
    return make_settings(*fleets, consolidation=True, search_budget_seconds=0.0)


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
    """One run.

    Args:
        arrivals: The workload.
        days: How long.
        scoring: How pods are spread over nodes.
    """

    def __init__(
        self, arrivals: list[Arrival], days: float, scoring: Scoring = "most-allocated"
    ) -> None:
        delays = Delays(modify=1, launch=20, join=30, terminate=30, node_gone=20, pod_stop=5,
                        pod_start=10)  # fmt: skip
        self.world = MemoryWorld(cluster="c", delays=delays, start=START, scoring=scoring)
        self.settings = month_settings()
        self._days = days
        self._sectors: dict[FleetId, str] = {}
        for fleet in self.settings.fleets():
            shape = FleetShape(name=fleet.name, region=HOME, labels=fleet.labels,
                               allocatable=fleet.options[0].resources,
                               instance_type=fleet.options[0].instance_type)  # fmt: skip
            self._sectors[self.world.add_fleet(shape)] = fleet.sector
        self.process = Process(self.world, self.settings)
        self.process.sleep_seconds = lambda: SLEEP_SECONDS
        self.process.plan_hooks.append(self._planned)
        self.outcome = Outcome(seconds=days * DAY)
        self.world.objects.watchers.append(self._occupies)
        self.world.log.watchers.append(self._called)
        self._specs: dict[tuple[str, int, int], PodSpec] = {}
        self._bound: dict[str, tuple[float, Pod]] = {}
        self._seconds: dict[str, float] = {}
        self._labels: dict[str, Labels] = {}
        self._unlabelled: Labels = FrozenMap({"app": "job"})
        self._empty_since: dict[NodeName, float] = {}
        self._counts: Counter[NodeName] = Counter()
        self._arrivals = arrivals
        for arrival in arrivals:
            self._expect(arrival)
        self._add_budgets()

    @property
    def _now(self) -> float:
        return self.world.clock.monotonic_seconds()

    def _expect(self, arrival: Arrival) -> None:
        self.world.clock.call_later(arrival.at, lambda: self._create(arrival))

    def _add_budgets(self) -> None:
        replicas = Counter(a.group for a in self._arrivals if a.sector == "services" and a.at == 0)
        away = {a.group: a.away_max for a in self._arrivals if a.away_max is not None}
        for group, most in sorted(away.items()):
            self.world.add_budget(
                BudgetShape(namespace="services", name=group, selector=selecting(app=group),
                            min_available=max(0, replicas[group] - (most or 0)))
            )  # fmt: skip

    def _spec(self, arrival: Arrival) -> PodSpec:
        key = (arrival.sector, arrival.cpu_milli, arrival.memory_mib)
        if key not in self._specs:
            self._specs[key] = make_spec(
                f"{arrival.cpu_milli}m", f"{arrival.memory_mib}Mi", sector=arrival.sector
            )
        return self._specs[key]

    def _create(self, arrival: Arrival) -> None:
        self.outcome.pods += 1
        service = arrival.sector == "services"
        name = f"{arrival.group}-{self.outcome.pods}"
        kind = "ReplicaSet" if service else "Job"
        if arrival.group not in self._labels:
            self._labels[arrival.group] = FrozenMap({"app": arrival.group})
        pod = Pod(
            key=PodKey(namespace=arrival.sector, name=name),
            spec=self._spec(arrival),
            owner=Owner(kind=kind, name=arrival.group, uid=name),
            labels=self._labels[arrival.group] if service else self._unlabelled,
        )
        self._seconds[name] = arrival.seconds
        if service:
            self.world.clock.call_later(arrival.seconds, lambda: self._delete(name))
        self.world.add_pod(pod)

    def _delete(self, name: str) -> None:
        """The service's pod, or whatever was made in its place, is deleted."""
        for pod in self.world.objects.pods.values():
            if pod.owner is not None and pod.owner.uid == name and not pod.deleting:
                self.world.remove_pod(pod.key)
                return

    def _finish(self, pod: Pod) -> None:
        if self.world.objects.find(pod.key) is not None:
            self.world.finish_pod(pod.key)
            self.world.clock.call_later(
                FINISHED_KEPT_SECONDS, lambda: self.world.remove_pod(pod.key)
            )

    def _occupies(self, pod: Pod, begins: bool) -> None:
        """A pod begins or ceases to hold a node."""
        node = NodeName(str(pod.node_name))
        if begins:
            self._counts[node] += 1
            self._bound[pod.key.uid] = (self._now, pod)
            created = pod.created_at or START
            self.outcome.waits.append((self.world.clock.now() - created).total_seconds())
            if pod.owner is not None and pod.owner.kind == "Job":
                length = self._seconds[pod.owner.uid]
                self.world.clock.call_later(length, lambda: self._finish(pod))
            return
        self._counts[node] -= 1
        if not self._counts[node]:
            self._empty_since[node] = self._now
        begun, _ = self._bound.pop(pod.key.uid)
        self._note(pod, begun, self._now)
        finished = self.world.objects.find(pod.key)
        job = pod.owner is not None and pod.owner.kind == "Job"
        self.outcome.jobs_lost += int(job and (finished is None or not finished.finished))

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
            ended = {InstanceId(str(each)) for each in call.arguments}
            for node in self.world.nodes():
                if node.instance_id in ended:
                    self.outcome.idle.append(self._now - self._empty_since[node.name])

    def run(self) -> Outcome:
        """Play the whole month."""
        begin = process_time()
        self.process.run_until(self._days * DAY)
        found, fleets = self.outcome, self.world.fleets
        found.cpu_seconds = process_time() - begin
        found.cycles = self.process.cycles
        found.unbound = sum(p.node_name is None for p in self.world.pods())
        for begun, pod in self._bound.values():
            self._note(pod, begun, found.seconds)
        for instance, fleet, at in fleets.launches:
            sector = self._sectors[fleet]
            end = min(found.seconds, fleets.ends.get(instance, found.seconds))
            found.nodes.setdefault(sector, []).append((at, end))
        return found
