"""A capacity loop over the in-memory world, and what it reported."""

from collections.abc import Callable, Mapping

from reconciler.adapters.memory import Delays, FleetShape, MemoryCloud, MemoryCluster, MemoryWorld
from reconciler.executor.executor import LiveExecutor
from reconciler.executor.ports import Ports
from reconciler.loops.reconcile_loop import CycleReport, ReconcileLoop
from reconciler.model.ids import FleetId
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Cost, Plan
from reconciler.model.snapshot import Snapshot
from reconciler.observer.observe import observe
from reconciler.planner.planner import plan
from reconciler.ports.changes import HandledChanges, Window
from tests.builders import HOME, NOW, amounts, labelled, make_fleet_settings, make_settings

SLEEP_SECONDS = 20.0
FREE = Cost(hourly_usd_before=0, hourly_usd_after=0, hourly_usd_lower_bound=0, gap=0)
EMPTY = Plan(at=NOW, cluster="analytics", home_region=HOME, cost=FREE)
"""A plan that does nothing."""
LABELS = {"sector": "primary", "fleet": "primary-small", "size": "small", "kind": "memory"}


class Recorder:
    """A Reporter that keeps everything."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.outcomes: list[Outcome] = []
        self.reports: list[CycleReport] = []
        self.begun: list[float] = []

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        self.plans.append(plan)

    def action_ended(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def cycle_ended(self, report: CycleReport) -> None:
        self.reports.append(report)


class Scene:
    """One empty fleet of 4-CPU nodes; `run` lets cycles pass in virtual time."""

    def __init__(self, planned: Callable[[Snapshot], Plan] | None = None) -> None:
        self.world = MemoryWorld(cluster="c", delays=Delays(modify=0, launch=2, join=2))
        self.fleet = self.world.add_fleet(
            FleetShape(
                name="primary-small",
                region=HOME,
                labels=labelled(**LABELS),
                allocatable=amounts(cpu=4, memory="16Gi", pods=20),
            )
        )
        self.settings = make_settings(make_fleet_settings("small"))
        self.cluster, self.cloud = MemoryCluster(self.world), MemoryCloud(self.world)
        self.recorder = Recorder()
        self.began_at: list[float] = []
        self.acting = True
        self._cycles_left = 0
        clock = self.world.clock
        self.loop = ReconcileLoop(
            observe=self._observe,
            plan=planned or (lambda snapshot: plan(snapshot, self.settings)),
            executor=LiveExecutor(
                Ports(cluster=self.cluster, clouds={"ec2-fleet": self.cloud}),
                clock.monotonic_seconds,
            ),
            changes=self.cluster,
            clock=clock,
            reporter=self.recorder,
            may_act=lambda: self.acting,
            stopping=lambda: self._cycles_left <= 0,
            sleep_seconds=lambda: SLEEP_SECONDS,
            remember=self._remember,
        )

    def run(self, cycles: int) -> None:
        """Run so many cycles and the pauses between them; the last one acts no more."""
        self._cycles_left = cycles
        self.loop.run()

    def add_expensive(self) -> FleetId:
        """Add a second fleet of the sector, which costs more."""
        other = make_fleet_settings("large", price="0.5")
        self.settings = make_settings(make_fleet_settings("small"), other)
        shape = FleetShape(
            name=other.name,
            region=HOME,
            labels=other.labels,
            allocatable=amounts(cpu=4, memory="16Gi", pods=20),
        )
        return self.world.add_fleet(shape)

    @property
    def pauses(self) -> list[float]:
        """Seconds from the begin of each cycle to that of the next."""
        pairs = zip(self.began_at, self.began_at[1:], strict=False)
        return [round(after - before, 3) for before, after in pairs]

    def _observe(self) -> Snapshot:
        self._cycles_left -= 1
        clock = self.world.clock
        self.began_at.append(clock.monotonic_seconds())
        return observe(self.cluster, [self.cloud], self.settings.regions, clock)

    def _remember(self, annotations: Mapping[str, str | None]) -> None:
        self.cluster.remember(annotations)


class NoSignal:
    """No source notifies a change, as with those on EC2's side; only time passes."""

    def __init__(self, scene: Scene) -> None:
        self._clock = scene.world.clock

    def wait_for_change(self, timeout_seconds: float) -> bool:
        self._clock.advance(timeout_seconds)
        return False

    def demand_waits(self) -> bool:
        """No pod came."""
        return False

    def gather(self, window: Window) -> float:
        """There is no burst."""
        return 0.0

    def acknowledge(self) -> tuple[HandledChanges, ...]:
        """No source has notified anything."""
        return ()
