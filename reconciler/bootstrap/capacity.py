"""The parts of the capacity loop: live cluster and cloud, executor, reporters, its config."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial

import structlog

from reconciler import __version__
from reconciler.adapters.aws import Clients, Ec2FleetCloud
from reconciler.adapters.kubernetes import KubernetesCluster, KubernetesEvents, connect
from reconciler.adapters.slack import SlackNotifier
from reconciler.adapters.system_clock import SystemClock
from reconciler.bootstrap.access import access_of
from reconciler.bootstrap.config_source import ConfigSource, faults_of
from reconciler.bootstrap.executing import ConfiguredExecutor
from reconciler.bootstrap.following import FollowedBranch
from reconciler.bootstrap.leadership import candidacy, taking_part, wait_for_lead
from reconciler.executor.executor import LiveExecutor
from reconciler.executor.ports import Ports
from reconciler.executor.runners import in_parallel
from reconciler.gitops.live import LiveDrift, live_drift
from reconciler.loops.drift_reporter import DriftReporter
from reconciler.loops.event_reporter import EventReporter
from reconciler.loops.leadership import Leadership
from reconciler.loops.log_reporter import LogReporter
from reconciler.loops.notify_reporter import NotifyReporter
from reconciler.loops.reconcile_loop import ReconcileLoop, Reporter
from reconciler.loops.reporters import Gated, Reporters
from reconciler.model.errors import PortError, ReconcilerError
from reconciler.model.plan import Plan
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.observer.observe import observe
from reconciler.planner.planner import plan
from reconciler.telemetry import events
from reconciler.web.board import ConfigInForce, LeadershipView, StatusBoard
from reconciler.web.metrics import Metrics
from reconciler.web.routes import Routes


def _say_nothing(text: str) -> None:
    """Nobody asked to be told."""


class Capacity:
    """The parts of one running capacity loop.

    Args:
        source: Its config.
        clock: Its time; the clock's `stop` ends it.
    """

    def __init__(self, source: ConfigSource, clock: SystemClock) -> None:
        self._log = structlog.get_logger()
        self._source = source
        self._clock = clock
        self._cluster: KubernetesCluster | None = None
        self._leadership: Leadership | None = None
        self._loop: ReconcileLoop | None = None
        self._cloud: CloudState | None = None
        """What EC2 answered last."""
        self.board = StatusBoard(clock, __version__, self._is_synced, self._who_leads)
        self._metrics = Metrics(self.board, clock, __version__)
        self.routes = Routes(self.board, self._metrics, access_of(source.config))
        self.branch = FollowedBranch(source, self)
        self.show_config()

    @property
    def listen(self) -> str:
        """Where HTTP is served."""
        return self._source.config.listen

    def log_crash(self) -> None:
        """Keep the traceback of a bug of ours: the process ends with one line only."""
        self._log.error(events.CRASHED, exc_info=True)

    def log_start(self, address: str) -> None:
        """Say what begins, and where it can be asked."""
        settings = self._source.settings
        self._log.info(
            events.STARTED,
            version=__version__,
            cluster=settings.cluster,
            regions=list(settings.regions),
            fleets=len(settings.fleets()),
            dry_run=self._source.config.dry_run,
            listen=address,
            config=self._source.path,
            config_commit=self._source.commit,
        )

    @contextmanager
    def loop(self) -> Iterator[ReconcileLoop]:
        """The loop over the live cluster and cloud; watches end with the block."""
        with ExitStack() as stack:
            cluster, cloud = self._ports(stack)
            reporter = stack.enter_context(self._reporter())
            self._loop = self._made(cluster, cloud, reporter)
            if self._clock.stop.is_set():  # the signal came before there was a wait to end
                cluster.wake()
            # Innermost: the Lease is let go of first, when the loop has made its last call.
            stack.enter_context(taking_part(self._leading))
            yield self._loop

    def _ports(self, stack: ExitStack) -> tuple[KubernetesCluster, Ec2FleetCloud]:
        """Cluster and cloud, neither of which changes anything unless this replica leads."""
        config = self._source.config
        ours = stack.enter_context(
            candidacy(config, self._clock, self._hindrance, partial(self.notify, "election"))
        )
        self._leadership = ours.leadership
        self._cluster = KubernetesCluster(
            connect(config.kubeconfig, fence=ours.leadership.may_act),
            lease_home=ours.lease_home,
            lease_touched=ours.leadership.look,
            awake_seconds=self._clock.awake_seconds,
        )
        stack.enter_context(closing(self._cluster))
        awake = self._clock.awake_seconds
        clients = Clients(fence=ours.leadership.may_act, awake_seconds=awake)
        cloud = Ec2FleetCloud(self._source.settings.cluster, clients, awake_seconds=awake)
        stack.enter_context(closing(cloud))
        return self._cluster, cloud

    @property
    def _leading(self) -> Leadership:
        assert self._leadership is not None, "made with the ports"
        return self._leadership

    def lead_or_fail(self) -> None:
        """Wait for the lead as long as a dead replica's Lease may last.

        Raises:
            ReconcilerError: Another replica leads.
        """
        if not self._source.config.dry_run:
            wait_for_lead(self._leading, self._source.config, self._clock)

    def may_act(self) -> bool:
        """A dry run never leads; it carries nothing out either."""
        return self._source.config.dry_run or self._leading.may_act()

    def may_tell(self) -> bool:
        """Messages and commits go out from the replica that acts, and from none in a dry run."""
        return not self._source.config.dry_run and self._leading.may_act()

    def _hindrance(self) -> str:
        """A dry run never takes the Lease."""
        return "this is a dry run" if self._source.config.dry_run else ""

    def notify(self, source: str) -> None:
        """Have the next cycle begin now, and say who asked for it."""
        if self._cluster is not None:
            self._cluster.signal.notify(source)

    def _who_leads(self) -> LeadershipView:
        ours = self._leadership
        if ours is None:
            return LeadershipView(enabled=self._source.config.leader_election.enabled, leads=False)
        return LeadershipView(
            enabled=ours.enabled, leads=ours.may_act(), holder=ours.holder, trouble=ours.trouble
        )

    @contextmanager
    def _reporter(self) -> Iterator[Reporters]:
        """Status page, metrics, log, Kubernetes Events, and Slack when there is a hook."""
        now = self._clock.monotonic_seconds
        log = LogReporter(now, lambda: self._source.config.max_logging_interval_seconds)
        reporters: list[Reporter] = [self.board, self._metrics, log, self.branch]
        with ExitStack() as stack:
            written = stack.enter_context(closing(self._kubernetes_events()))
            reporters.append(Gated(EventReporter(written), self.may_tell))
            tell: Callable[[str], None] = _say_nothing
            hook = self._source.config.notifications.slack_hook.get_secret_value()
            if hook:
                slack = stack.enter_context(closing(SlackNotifier(hook, self._log_unsent)))
                reporters.append(Gated(NotifyReporter(slack, now), self.may_tell))
                tell = slack.notify
            reporters.append(self._drift_reporter(tell))
            yield Reporters(reporters)

    def _drift_reporter(self, tell: Callable[[str], None]) -> DriftReporter:
        """Every replica shows drift, the one that acts tells people."""
        return DriftReporter(
            self._drift,
            self.board.drift_found,
            lambda text: tell(text) if self.may_tell() else None,
        )

    def _drift(self, cloud: CloudState) -> tuple[LiveDrift, ...]:
        self._cloud = cloud
        return live_drift(self._source.config, self._source.settings.regions[0], cloud)

    def _kubernetes_events(self) -> KubernetesEvents:
        """Events over connections of their own: they hold nothing up."""
        return KubernetesEvents(
            connect(self._source.config.kubeconfig, fence=self._leading.may_act),
            instance=self._leading.identity or socket.gethostname(),
            now=self._clock.now,
            monotonic_seconds=self._clock.monotonic_seconds,
            counted=self._metrics.kubernetes_event,
        )

    def _log_unsent(self, error: PortError) -> None:
        self._log.warning(events.NOTIFICATION_FAILED, reason=str(error))

    def wake(self) -> None:
        """End the loop's waits for good."""
        if self._cluster is not None:
            self._cluster.wake()

    def stop(self) -> None:
        """End the loop."""
        self._clock.stop.set()
        self.wake()

    def _made(
        self, cluster: KubernetesCluster, cloud: Ec2FleetCloud, reporter: Reporters
    ) -> ReconcileLoop:
        clock, source = self._clock, self._source
        live = LiveExecutor(
            Ports(cluster=cluster, clouds={"ec2-fleet": cloud}),
            clock.monotonic_seconds,
            stopping=lambda: clock.stop.is_set() or not self._leading.may_act(),
            runner=in_parallel,
        )

        def observe_now() -> Snapshot:
            self._follow_config()
            return observe(cluster, [cloud], source.settings.observed_regions, clock)

        def plan_now(snapshot: Snapshot) -> Plan:
            return plan(snapshot, source.settings)

        return ReconcileLoop(
            observe=observe_now,
            plan=plan_now,
            executor=ConfiguredExecutor(live, source),
            changes=cluster,
            clock=clock,
            reporter=reporter,
            may_act=self.may_act,
            stopping=clock.stop.is_set,
            sleep_seconds=self._pause_seconds,
            errors_in_a_row_max=source.config.critical_error_threshold,
            remember=cluster.remember,
        )

    def _is_synced(self) -> bool:
        return self._cluster is not None and self._cluster.synced

    def _pause_seconds(self) -> float:
        """Each cycle looks at the config file, so none is further off than its interval."""
        config = self._source.config
        return min(config.sleep_interval_seconds, config.config_refresh_interval_seconds)

    def _follow_config(self) -> None:
        """Take a changed config over; one that cannot be used is reported and not followed."""
        before = self._source.config
        try:
            changed = self._source.refresh()
        except ReconcilerError as error:
            self.config_refused(error, self._source.offered)
            return
        if not changed:
            return
        self._log.info(
            events.CONFIG_RELOADED, file=self._source.path, config_commit=self._source.commit
        )
        self._metrics.config_loaded()
        self.show_config()
        if self._loop is not None:
            self._loop.errors_in_a_row_max = self._source.config.critical_error_threshold
        fixed = self._source.fixed_changes(before)
        if fixed:
            self._log.warning(events.CONFIG_NEEDS_RESTART, keys=list(fixed))

    @property
    def cloud(self) -> CloudState | None:
        """What EC2 answered last."""
        return self._cloud

    def config_refused(self, error: ReconcilerError, file: str) -> None:
        """Report a config that cannot be used; what was in force stays."""
        self._log.error(events.CONFIG_REFUSED, file=file, faults=faults_of(error))
        self.board.config_refused(error)
        self._metrics.config_refused()

    def show_config(self) -> None:
        """Show which config is in force."""
        config, settings = self._source.config, self._source.settings
        self.board.config_loaded(
            ConfigInForce(
                file=self._source.path,
                commit=self._source.commit,
                faults=self.branch.faults,
                cluster=settings.cluster,
                regions=tuple(settings.regions),
                dry_run=config.dry_run,
                sleep_seconds=self._pause_seconds(),
                loaded_at=self._clock.now(),
            )
        )
