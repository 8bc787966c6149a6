"""Metrics in a registry of their own: counters are kept here, gauges are read off the board."""

from collections.abc import Iterable, Iterator
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from reconciler.gitops.status import STAGES, ClusterProgress
from reconciler.loops.describe import describe
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.actions import SetCapacity
from reconciler.model.binding import Binding, Verdict
from reconciler.model.ids import PodKey
from reconciler.model.outcome import Outcome
from reconciler.model.plan import FleetPlan, Plan
from reconciler.model.snapshot import Snapshot
from reconciler.ports.clock import Clock
from reconciler.telemetry import metrics as names
from reconciler.web.board import StatusBoard
from reconciler.web.status import pending_pods, unplaceable_by_code

CYCLE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
REACTION_BUCKETS = (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 300, 1800)


class Metrics:
    """A Reporter that counts.

    Args:
        board: Where gauges are read from; must hear of a plan before this reporter does.
        clock: For reaction times.
        version: Of this program.
    """

    def __init__(self, board: StatusBoard, clock: Clock, version: str) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._clock = clock
        self._snapshot: Snapshot | None = None
        self._plan: Plan | None = None
        self._reacted: set[PodKey] = set()
        info = Info(_base(names.BUILD_INFO, "_info"), "This program.", registry=self.registry)
        info.info({"version": version})
        self._cycles = Counter(
            _base(names.CYCLES), "Cycles by result.", ["result"], registry=self.registry
        )
        self._seconds = Histogram(
            names.CYCLE_SECONDS,
            "How long each phase of a cycle took.",
            ["phase"],
            buckets=CYCLE_BUCKETS,
            registry=self.registry,
        )
        self._changes = Histogram(
            names.CHANGE_SECONDS,
            "From the first change that a source notified to the end of the cycle that saw it.",
            ["source"],
            buckets=REACTION_BUCKETS,
            registry=self.registry,
        )
        self._actions = Counter(
            _base(names.ACTIONS),
            "Actions by kind, policy and outcome.",
            ["action", "policy", "outcome"],
            registry=self.registry,
        )
        self._action_errors = Counter(
            _base(names.ACTION_ERRORS),
            "Actions that came to nothing, by kind and class of error.",
            ["action", "error"],
            registry=self.registry,
        )
        self._reaction = Histogram(
            names.REACTION_SECONDS,
            "From a pod's creation to the accepted request for its capacity.",
            buckets=REACTION_BUCKETS,
            registry=self.registry,
        )
        self._reloads = Counter(
            _base(names.CONFIG_RELOADS), "Configs that came into force.", registry=self.registry
        )
        self._config_errors = Counter(
            _base(names.CONFIG_ERRORS), "Config files that were refused.", registry=self.registry
        )
        self._kubernetes_events = Counter(
            _base(names.KUBERNETES_EVENTS),
            "Kubernetes Events by what became of them.",
            ["result"],
            registry=self.registry,
        )
        for result in ("written", "dropped", "failed"):
            self._kubernetes_events.labels(result)
        for result in ("succeeded", "troubled", "failed"):
            self._cycles.labels(result)
        for error in ("Throttled", "InsufficientCapacity", "OutcomeUnknown"):
            self._action_errors.labels("set-capacity", error)
        self.registry.register(_BoardCollector(board))
        ProcessCollector(namespace=names.PREFIX, registry=self.registry)

    def text(self) -> bytes:
        """What Prometheus scrapes."""
        return generate_latest(self.registry)

    def config_loaded(self) -> None:
        """A config came into force."""
        self._reloads.inc()

    def kubernetes_event(self, result: str) -> None:
        """A Kubernetes Event was `written`, `dropped` or `failed`."""
        self._kubernetes_events.labels(result).inc()

    def config_refused(self) -> None:
        """A config file was refused."""
        self._config_errors.inc()

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Keep both until the cycle ends, for reaction times."""
        self._snapshot, self._plan = snapshot, plan

    def action_ended(self, outcome: Outcome) -> None:
        """Count one action."""
        action = outcome.action
        name = describe(action).name
        self._actions.labels(name, action.policy, outcome.kind).inc()
        if outcome.error:
            self._action_errors.labels(name, outcome.error).inc()
        if isinstance(action, SetCapacity) and outcome.kind == "applied":
            self._observe_reaction(action)

    def cycle_ended(self, report: CycleReport) -> None:
        """Count one cycle."""
        self._snapshot = self._plan = None
        if report.error is not None:
            self._cycles.labels("failed").inc()
            return
        self._cycles.labels("succeeded" if report.settled else "troubled").inc()
        for each in report.handled:
            self._changes.labels(each.source).observe(each.seconds)
        if report.gathered_seconds:
            self._seconds.labels("gather").observe(report.gathered_seconds)
        self._seconds.labels("observe").observe(report.observe_seconds)
        self._seconds.labels("plan").observe(report.plan_seconds)
        self._seconds.labels("act").observe(report.act_seconds)

    def _observe_reaction(self, action: SetCapacity) -> None:
        """One observation per pod that asked for this fleet's new nodes, the first time only."""
        if self._plan is None or self._snapshot is None:
            return
        now = self._clock.now()
        asking = {
            each.pod
            for each in self._plan.placements
            if each.new_node is not None
            and each.fleet == action.fleet
            and each.region in {None, action.region}
        }
        alive = {pod.key for pod in self._snapshot.cluster.pods if pod.node_name is None}
        for pod in self._snapshot.cluster.pods:
            if pod.key in asking and pod.key not in self._reacted and pod.created_at is not None:
                self._reaction.observe(max(0.0, (now - pod.created_at).total_seconds()))
        self._reacted = (self._reacted | asking) & alive


class _BoardCollector(Collector):
    """Gauges, all of one moment: a scrape never sees half a plan."""

    def __init__(self, board: StatusBoard) -> None:
        self._board = board

    def collect(self) -> Iterable[Metric]:
        """The gauges."""
        view = self._board.view
        leads = self._board.leadership.leads
        yield _gauge(names.ERRORS_IN_A_ROW, "Failed cycles in a row.", view.errors_in_a_row)
        yield _gauge(
            names.CONFIG_VALID,
            "1 while the newest config, on disk or at the head of the branch, is in force.",
            not view.config.faults,
        )
        commit = GaugeMetricFamily(
            names.CONFIG_COMMIT,
            "1 for the commit whose config is in force; none while a file is.",
            labels=["commit"],
        )
        if view.config.commit:
            commit.add_metric([view.config.commit], 1)
        yield commit
        yield _gauge(names.DRY_RUN, "1 while nothing is changed.", view.config.dry_run)
        yield _gauge(names.LEADER, "1 while this replica acts, 0 while it stands by.", leads)
        age = self._board.success_age_seconds()
        yield _gauge(names.LAST_SUCCESS_AGE, "Since the last cycle without an error.", age)
        if view.plan is not None:
            yield from _of_plan(view.plan)
        yield _of_progress(view.progress)
        drift = GaugeMetricFamily(
            names.FLEET_DRIFT,
            "1 while a fleet is not what the config says.",
            labels=["fleet", "region", "kind"],
        )
        for each in view.drift:
            drift.add_metric([each.fleet, each.region, each.kind], 1)
        yield drift


def _of_progress(progress: Iterable[ClusterProgress]) -> Metric:
    stages = GaugeMetricFamily(
        names.GITOPS_STAGE,
        "1 for the stage that the newest config of a cluster has reached.",
        labels=["config", "stage"],
    )
    for each in progress:
        for stage in STAGES:
            stages.add_metric([each.config, stage], int(stage == each.stage))
    return stages


def _of_plan(plan: Plan) -> Iterator[Metric]:
    yield _gauge(names.PODS_PENDING, "Pods of ours without a node.", pending_pods(plan))
    unplaceable = GaugeMetricFamily(
        names.PODS_UNPLACEABLE, "Pods that nothing can take, by code.", labels=["code"]
    )
    for code, count in unplaceable_by_code(plan).items():
        unplaceable.add_metric([code], count)
    yield unplaceable
    yield _of_binding(plan.binding)
    yield _gauge(
        names.CLOCK_SKEW,
        "How far our clock is ahead of EC2's and the API server's.",
        plan.clock_skew_seconds,
    )
    yield _gauge(
        names.STUCK_ENDS,
        "Instances that never became nodes and were ended in the last hour.",
        len(plan.stuck_ends),
    )
    yield _gauge(names.NODES_HELD, "Nodes kept although a policy would go on.", len(plan.held))
    yield _gauge(
        names.DEMAND_QUARANTINED,
        "Kinds of pods for which nothing is bought any more.",
        plan.quarantined,
    )
    yield _gauge(
        names.RAISED_NODES,
        "Nodes by which targets were raised for demand within the last hour.",
        sum(raised.nodes for raised in plan.raises),
    )
    if plan.raise_nodes_left is not None:
        yield _gauge(
            names.RAISE_NODES_LEFT,
            "Nodes that raise_limits still allows to be asked for.",
            plan.raise_nodes_left,
        )
    yield _gauge(
        names.ORPHAN_INSTANCES, "Instances with our tags whose fleet is gone.", plan.orphans
    )
    yield _of_fleets(
        names.FLEET_UNAVAILABLE,
        "1 while a fleet cannot be asked for more.",
        ((f, int(bool(f.unavailable))) for f in plan.fleets),
    )
    yield _of_fleets(
        names.FLEET_REMOVAL_NODES,
        "Nodes left of a fleet whose removal was approved; 0 for fleets that stay.",
        ((f, f.joined if f.removal else 0) for f in plan.fleets),
    )
    yield _of_fleets(
        names.FLEET_TARGET, "Target after the plan.", ((f, f.target) for f in plan.fleets)
    )
    yield _of_fleets(
        names.FLEET_CURRENT, "Target before the plan.", ((f, f.current) for f in plan.fleets)
    )
    yield _of_fleets(names.FLEET_JOINED, "Joined nodes.", ((f, f.joined) for f in plan.fleets))
    yield _of_fleets(
        names.FLEET_LAUNCHING, "Nodes still to join.", ((f, f.launching) for f in plan.fleets)
    )
    cost = plan.cost
    yield _gauge(names.COST_BEFORE, "Hourly cost of the old targets.", cost.hourly_usd_before)
    yield _gauge(names.COST_AFTER, "Hourly cost of the new targets.", cost.hourly_usd_after)
    yield _gauge(
        names.COST_LOWER_BOUND,
        "What no plan can cost less than.",
        cost.hourly_usd_lower_bound,
    )
    yield _gauge(names.COST_GAP, "(after - lower bound) / after.", cost.gap)


def _of_binding(binding: Binding) -> Metric:
    verdicts = GaugeMetricFamily(
        names.CLUSTER_BOUND,
        "1 for the verdict on whether this cluster runs the fleets' instances.",
        labels=["verdict"],
    )
    for verdict in get_args(Verdict):
        verdicts.add_metric([verdict], int(verdict == binding.verdict))
    return verdicts


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=float(value))


def _of_fleets(name: str, text: str, values: Iterable[tuple[FleetPlan, int]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["fleet", "region"])
    for fleet, value in values:
        family.add_metric([fleet.fleet, fleet.region], value)
    return family


def _base(name: str, suffix: str = "_total") -> str:
    """The name without the suffix that the client library adds."""
    return name.removesuffix(suffix)
