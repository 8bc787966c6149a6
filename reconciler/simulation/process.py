"""The program as a process that can crash: the real loop, planner and executor on a world."""

from collections.abc import Callable

from reconciler.adapters.memory import Crash, MemoryCloud, MemoryCluster, MemoryNotices, MemoryWorld
from reconciler.executor.executor import LiveExecutor
from reconciler.executor.ports import Ports
from reconciler.loops.reconcile_loop import CycleReport, ReconcileLoop
from reconciler.model.errors import PortError
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.observer.observe import observe
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings

RESTART_SECONDS = 10.0
"""From a crash to the first cycle of the next process."""
CONFIRM_SECONDS = 30.0
"""A second full list is read after this time (as adapters.kubernetes does)."""
PLAN_SECONDS = 0.2
"""How long planning takes in virtual time; the world continues meanwhile."""


class Process:
    """Runs the loop in virtual time; after a crash a new process starts from the world's state.

    Args:
        world: All that survives a crash.
        settings: The sector config in force; may be replaced at any time.
        call_seconds: What each call takes.
    """

    def __init__(
        self, world: MemoryWorld, settings: PlannerSettings, call_seconds: float = 0.0
    ) -> None:
        self.world = world
        self.settings = settings
        self.planned_with = settings
        """The config that the current plan was made with."""
        self.sleep_seconds: Callable[[], float] = lambda: 20.0
        self.crashes = 0
        self.cycles = 0
        self.reports: list[CycleReport] = []
        """The reports of the last cycles only."""
        self.active_at = 0.0
        """When a plan last had something to do, or a cycle failed."""
        self.cluster_known_at = 0.0
        """The time of the observation that the current plan is based on."""
        self.plan_hooks: list[Callable[[Snapshot, Plan], None]] = []
        self.outcome_hooks: list[Callable[[Outcome], None]] = []
        self._plan_seconds = PLAN_SECONDS if call_seconds else 0.0
        self._until = 0.0
        world.log.seconds_each = call_seconds
        self._start()

    @property
    def now(self) -> float:
        """Return virtual seconds since the world began."""
        return self.world.clock.monotonic_seconds()

    def _start(self) -> None:
        self.cluster, self.cloud = MemoryCluster(self.world), MemoryCloud(self.world)
        self.queue = MemoryNotices(self.world.messages, self.world.log)
        self.frozen_at: float | None = None
        self.started_at = self.now
        clock = self.world.clock
        self._loop = ReconcileLoop(
            observe=self._observe,
            plan=self._plan,
            executor=LiveExecutor(
                Ports(cluster=self.cluster, clouds={"ec2-fleet": self.cloud, "asg": self.cloud}),
                clock.monotonic_seconds,
                self._stopping,
            ),
            changes=self.cluster,
            clock=clock,
            reporter=self,
            may_act=lambda: True,
            stopping=self._stopping,
            sleep_seconds=lambda: max(0.1, min(self.sleep_seconds(), self._until - self.now)),
            remember=self.cluster.remember,
            settle=self.queue.settle,
        )

    def _stopping(self) -> bool:
        return self.now >= self._until

    def _observe(self) -> Snapshot:
        self.world.relists = 2 if self.now - self.started_at >= CONFIRM_SECONDS else 1
        self.cluster_known_at = self.now if self.frozen_at is None else self.frozen_at
        self.planned_with = self.settings
        regions, clock = self.settings.regions, self.world.clock
        return observe(self.cluster, [self.cloud], regions, clock, self.queue)

    def _plan(self, snapshot: Snapshot) -> Plan:
        made = plan(snapshot, self.planned_with)
        if self._plan_seconds:
            self.world.clock.advance(self._plan_seconds)
        return made

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """See Reporter."""
        if plan.actions:
            self.active_at = self.now
        for hook in self.plan_hooks:
            hook(snapshot, plan)

    def action_ended(self, outcome: Outcome) -> None:
        """See Reporter."""
        for hook in self.outcome_hooks:
            hook(outcome)

    def cycle_ended(self, report: CycleReport) -> None:
        """See Reporter."""
        self.cycles += 1
        self.reports = [*self.reports[-4:], report]
        if not report.settled:
            self.active_at = self.now

    def freeze(self, *, frozen: bool) -> None:
        """Make the process's caches lag behind, or catch up."""
        self.cluster.freeze(frozen=frozen)
        self.frozen_at = self.now if frozen else None

    def run_until(self, seconds: float) -> None:
        """Run cycles until virtual time has come this far; restart after crashes."""
        self._until = seconds
        while not self._stopping():
            try:
                self._loop.run()
            except (Crash, PortError):
                self.crashes += 1
                self.world.advance(RESTART_SECONDS)
                self._start()

    def run_for(self, seconds: float) -> None:
        """Run cycles for this long."""
        self.run_until(self.now + seconds)
