"""Metrics in a registry of their own: counters are kept here, gauges come from the board."""

from collections.abc import Sequence
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.process_collector import ProcessCollector

from reconciler.loops.describe import describe
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.actions import SetCapacity
from reconciler.model.ids import PodKey
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.ports.clock import Clock
from reconciler.telemetry import metrics as names
from reconciler.web.board import StatusBoard
from reconciler.web.descheduler_metrics import DeschedulerMetrics
from reconciler.web.gauges import BoardCollector
from reconciler.web.notice_metrics import NoticeMetrics

CYCLE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
REACTION_BUCKETS = (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 300, 1800)


class Metrics:
    """A Reporter that counts.

    Args:
        board: The source of gauges; it must get each plan before this reporter does.
        clock: For reaction times.
        version: Of this program.
    """

    def __init__(self, board: StatusBoard, clock: Clock, version: str) -> None:
        # Else each counter and histogram has a gauge `_created` beside it, which nothing reads.
        disable: Any = disable_created_metrics  # has no types
        disable()
        self.registry = CollectorRegistry(auto_describe=False)
        self._clock = clock
        self._snapshot: Snapshot | None = None
        self._plan: Plan | None = None
        self._reacted: set[PodKey] = set()
        info = Info(_base(names.BUILD_INFO, "_info"), "This program.", registry=self.registry)
        info.info({"version": version})
        self._cycles = self._counter(names.CYCLES, "Cycles by result.", "result")
        self._seconds = self._histogram(
            names.CYCLE_SECONDS, "How long each phase of a cycle took.", CYCLE_BUCKETS, "phase"
        )
        self._changes = self._histogram(
            names.CHANGE_SECONDS,
            "From the first change that a source notified to the end of the cycle that saw it.",
            REACTION_BUCKETS,
            "source",
        )
        self._actions = self._counter(
            names.ACTIONS, "Actions by kind, policy and outcome.", "action", "policy", "outcome"
        )
        self._action_errors = self._counter(
            names.ACTION_ERRORS,
            "Actions that came to nothing, by kind and class of error.",
            "action",
            "error",
        )
        self._cycle_errors = self._counter(
            names.CYCLE_ERRORS, "Cycles without a plan, by class of error.", "error"
        )
        self._descheduler = DeschedulerMetrics(self.registry)
        self._reaction = self._histogram(
            names.REACTION_SECONDS,
            "From a pod's creation to the accepted request for its capacity.",
            REACTION_BUCKETS,
        )
        self._reloads = self._counter(names.CONFIG_RELOADS, "Configs that came into force.")
        self._config_errors = self._counter(names.CONFIG_ERRORS, "Config files that were refused.")
        self._kubernetes_events = self._counter(
            names.KUBERNETES_EVENTS, "Kubernetes Events by what became of them.", "result"
        )
        self._recordings = self._counter(names.RECORDINGS, "Demand to write down.", "result")
        self.notices = NoticeMetrics(self.registry)
        self._begin_at_zero()
        self.registry.register(BoardCollector(board))
        ProcessCollector(namespace=names.PREFIX, registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        """Return a new counter of the registry, by its full name."""
        return Counter(_base(name), text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        """Return a new histogram of the registry; buckets are in seconds."""
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

    def _begin_at_zero(self) -> None:
        """Create the usual series with 0: `increase` misses a new series' first step."""
        for result in ("written", "dropped", "failed"):
            self._kubernetes_events.labels(result)
        for result in ("taken", "behind", "failed"):
            self._recordings.labels(result)
        for result in ("succeeded", "troubled", "failed"):
            self._cycles.labels(result)
        for error in ("ObservationError", "Forbidden", "Throttled", "Unavailable"):
            self._cycle_errors.labels(error)
        for error in ("Forbidden", "Throttled", "InsufficientCapacity", "OutcomeUnknown"):
            self._action_errors.labels("set-capacity", error)
        for policy in ("scale-up", "min-capacity", "overflow"):
            self._actions.labels("set-capacity", policy, "failed")

    def text(self) -> bytes:
        """Return the metrics for Prometheus."""
        return generate_latest(self.registry)

    def config_loaded(self) -> None:
        """Count a config that came into force."""
        self._reloads.inc()

    def kubernetes_event(self, result: str) -> None:
        """Count a Kubernetes Event that was `written`, `dropped` or `failed`."""
        self._kubernetes_events.labels(result).inc()

    def demand_recorded(self, result: str) -> None:
        """Count changed demand: `taken` by the log, refused as it was `behind`, or `failed`."""
        self._recordings.labels(result).inc()

    def config_refused(self) -> None:
        """Count a config that was refused."""
        self._config_errors.inc()

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Keep both until the cycle ends, for reaction times."""
        self._snapshot, self._plan = snapshot, plan

    def action_ended(self, outcome: Outcome) -> None:
        """Count one action."""
        action = outcome.action
        name = describe(action).name
        self._actions.labels(name, action.policy, outcome.kind).inc()
        self._descheduler.count(outcome)
        if outcome.error:
            self._action_errors.labels(name, outcome.error).inc()
        if isinstance(action, SetCapacity) and outcome.kind == "applied":
            self._observe_reaction(action)

    def cycle_ended(self, report: CycleReport) -> None:
        """Count one cycle."""
        self._snapshot = self._plan = None
        if report.error is not None:
            self._cycles.labels("failed").inc()
            self._cycle_errors.labels(type(report.error).__name__).inc()
            return
        self._cycles.labels("succeeded" if report.settled else "troubled").inc()
        if report.acted and report.plan is not None:
            self.notices.count(report.plan.notices)
            self.notices.note_interrupted(report.plan.interrupted)
        for each in report.handled:
            self._changes.labels(each.source).observe(each.seconds)
        if report.gathered_seconds:
            self._seconds.labels("gather").observe(report.gathered_seconds)
        self._seconds.labels("observe").observe(report.observe_seconds)
        self._seconds.labels("plan").observe(report.plan_seconds)
        self._seconds.labels("act").observe(report.act_seconds)

    def _observe_reaction(self, action: SetCapacity) -> None:
        """Observe one reaction per pod that needs this fleet's new nodes, the first time only."""
        if self._plan is None or self._snapshot is None:
            return
        now = self._clock.now()
        asking = {
            placement.pod
            for placement in self._plan.placements
            if placement.new_node is not None
            and placement.fleet == action.fleet
            and placement.region in {None, action.region}
        }
        alive = {pod.key for pod in self._snapshot.cluster.pods if pod.node_name is None}
        for pod in self._snapshot.cluster.pods:
            if pod.key in asking and pod.key not in self._reacted and pod.created_at is not None:
                self._reaction.observe(max(0.0, (now - pod.created_at).total_seconds()))
        self._reacted = (self._reacted | asking) & alive


def _base(name: str, suffix: str = "_total") -> str:
    """Return the name without the suffix that the client library adds."""
    return name.removesuffix(suffix)
