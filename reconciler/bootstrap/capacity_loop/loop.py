"""Builds the capacity loop over a live cluster and cloud, and keeps its parts together."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import structlog

from reconciler import __version__
from reconciler.adapters.aws import Clients, SqsNotices
from reconciler.adapters.kubernetes import KubernetesCluster, connect
from reconciler.adapters.system_clock import SystemClock
from reconciler.bootstrap.capacity_loop.arrivals import Arrivals
from reconciler.bootstrap.capacity_loop.config_reload import ConfigReloader
from reconciler.bootstrap.capacity_loop.config_source import ConfigSource
from reconciler.bootstrap.capacity_loop.configured_executor import ConfiguredExecutor
from reconciler.bootstrap.capacity_loop.followed_branch import FollowedBranch
from reconciler.bootstrap.capacity_loop.leadership import candidacy, taking_part, wait_for_lead
from reconciler.bootstrap.capacity_loop.reporting import Reporting
from reconciler.bootstrap.planning.clouds import aws_clouds
from reconciler.bootstrap.planning.planning import plan_without_gc
from reconciler.bootstrap.planning.providers import observed_clouds
from reconciler.config.schema import SectorConfig
from reconciler.executor.executor import LiveExecutor
from reconciler.executor.ports import Ports
from reconciler.executor.runners import in_parallel
from reconciler.loops.lease.leadership import Leadership
from reconciler.loops.reconcile_loop import ReconcileLoop
from reconciler.loops.reporters.combined import Reporters
from reconciler.model.cluster import Node
from reconciler.model.errors import PortError, ReconcilerError
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.observer.observe import observe
from reconciler.planner.fleets.departing import regions_to_observe
from reconciler.telemetry import events
from reconciler.telemetry.scrubbing import Scrubber
from reconciler.web.access import AccessRules
from reconciler.web.address import web_address
from reconciler.web.board import StatusBoard
from reconciler.web.metrics import Metrics
from reconciler.web.routes import Routes
from reconciler.web.view import LeadershipView


def build_loop(
    source: ConfigSource,
    clock: SystemClock,
    ports: Ports,
    reporter: Reporters,
    config: ConfigReloader,
    *,
    leads: Callable[[], bool],
    may_act: Callable[[], bool],
) -> ReconcileLoop:
    """Build the loop over these ports: it observes, plans, acts and reports.

    Args:
        source: The config in force, read by every part that needs it.
        clock: The time; its `stop` ends the loop.
        ports: The cluster and the clouds.
        reporter: Gets every plan, outcome and cycle.
        config: Applies a changed config before each observation.
        leads: Whether this replica leads; an execution ends when it no longer does.
        may_act: Whether a plan may be executed; in a dry run it is executed without effect.
    """
    live = LiveExecutor(
        ports,
        clock.monotonic_seconds,
        stopping=lambda: clock.stop.is_set() or not leads(),
        runner=in_parallel,
    )
    observer = _Observer(source, clock, ports)

    def follow_and_observe() -> Snapshot:
        if config.follow():
            loop.errors_in_a_row_max = source.config.critical_error_threshold
        return observer.observe()

    loop = ReconcileLoop(
        observe=follow_and_observe,
        plan=lambda snapshot: plan_without_gc(snapshot, source.settings),
        executor=ConfiguredExecutor(live, source),
        changes=ports.cluster,
        clock=clock,
        reporter=reporter,
        may_act=may_act,
        stopping=clock.stop.is_set,
        sleep_seconds=config.pause_seconds,
        errors_in_a_row_max=source.config.critical_error_threshold,
        remember=ports.cluster.remember,
    )
    if ports.queue is not None:
        loop.settle = ports.queue.settle
    return loop


class _Observer:
    """Observes by the config in force; nodes seen last show which Regions are of interest."""

    def __init__(self, source: ConfigSource, clock: SystemClock, ports: Ports) -> None:
        self._source, self._clock, self._ports = source, clock, ports
        self._nodes: tuple[Node, ...] = ()

    def observe(self) -> Snapshot:
        """Return what cluster, clouds and queue show now."""
        settings = self._source.settings
        snapshot = observe(
            self._ports.cluster,
            observed_clouds(self._ports.clouds, settings),
            regions_to_observe(self._nodes, settings),
            self._clock,
            self._ports.queue,
        )
        self._nodes = snapshot.cluster.nodes
        return snapshot


class CapacityLoop:
    """Keeps the parts of one running capacity loop together.

    Args:
        source: Its config.
        clock: Its time; the clock's `stop` ends it.
        secrets: Texts that are masked everywhere.
    """

    def __init__(
        self, source: ConfigSource, clock: SystemClock, secrets: Iterable[str] = ()
    ) -> None:
        self._log = structlog.get_logger()
        self._source = source
        self._clock = clock
        self._cluster: KubernetesCluster | None = None
        self._leadership: Leadership | None = None
        self._cloud: CloudState | None = None
        """What EC2 answered last; None: nothing yet."""
        self.board = StatusBoard(
            clock, __version__, self._is_synced, self._who_leads, Scrubber(secrets)
        )
        self._metrics = Metrics(self.board, clock, __version__)
        self.routes = Routes(
            self.board, self._metrics, _access_of(source.config), lambda: source.settings
        )
        self.branch = FollowedBranch(source, self)
        self._config = ConfigReloader(
            source, clock, self.board, self._metrics, lambda: self.branch.trouble
        )
        self.show_config()

    @property
    def listen(self) -> str:
        """Return where HTTP is served."""
        return self._source.config.listen

    def log_crash(self) -> None:
        """Log the traceback of a bug: without it the process ends with one line only."""
        self._log.error(events.CRASHED, exc_info=True)

    def log_start(self, address: str) -> None:
        """Log that the loop starts, and where its status is served."""
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
        """Build the loop over the live cluster and cloud; watches end with the block."""
        with ExitStack() as stack:
            ports = self._ports(stack)
            reporter = stack.enter_context(self._reporting().reporters())
            loop = build_loop(
                self._source,
                self._clock,
                ports,
                reporter,
                self._config,
                leads=self._leading.may_act,
                may_act=self.may_act,
            )
            if self._clock.stop.is_set():  # the signal came before there was a wait to end
                self.wake()
            # Innermost: the Lease is released first, right after the loop has made its last call.
            stack.enter_context(taking_part(self._leading))
            yield loop

    def _ports(self, stack: ExitStack) -> Ports:
        """Return cluster, clouds and queue; they change nothing unless this replica leads."""
        config = self._source.config
        ours = stack.enter_context(
            candidacy(
                config,
                self._clock,
                self._hindrance,
                gained=self._gained_lead,
                lost=self.board.lead_lost,
                broken=self.stop,
            )
        )
        self._leadership = ours.leadership
        self._cluster = KubernetesCluster(
            connect(config.kubeconfig, config.kube_context, fence=ours.leadership.may_act),
            lease_home=ours.lease_home,
            lease_touched=ours.leadership.look,
            awake_seconds=self._clock.awake_seconds,
        )
        stack.enter_context(closing(self._cluster))
        awake = self._clock.awake_seconds
        clients = Clients(
            fence=ours.leadership.may_act, awake_seconds=awake, answered=self.board.answered
        )
        clouds = stack.enter_context(aws_clouds(lambda: self._source.settings, clients, awake))
        queue = SqsNotices(
            lambda: self._source.config.interruption.queue_url,
            clients,
            home=self._source.settings.home_region,
            may_receive=ours.leadership.may_act,
            arrived=Arrivals(clouds.values(), partial(self.notify, "interruption-queue")),
            troubled=self._queue_troubled,
        )
        stack.enter_context(closing(queue))
        return Ports(cluster=self._cluster, clouds=clouds, queue=queue)

    def _queue_troubled(self, error: PortError | None) -> None:
        """Report which call for the interruption queue fails, or that all of them work again."""
        self._metrics.notices.queue_readable(readable=error is None)
        self.board.queue_troubled(error)
        if error is None:
            self._log.info(events.QUEUE_READABLE)
        else:
            self._log.error(events.QUEUE_UNREADABLE, reason=str(error))

    @property
    def _leading(self) -> Leadership:
        assert self._leadership is not None, "made with the ports"
        return self._leadership

    def lead_or_fail(self) -> None:
        """Wait for the lead for as long as a dead replica's Lease may last.

        Raises:
            ReconcilerError: Another replica leads.
        """
        if not self._source.config.dry_run:
            wait_for_lead(self._leading, self._source.config, self._clock)

    def may_act(self) -> bool:
        """Return whether plans are executed: by the leader, or without effect in a dry run."""
        return self._source.config.dry_run or self._leading.may_act()

    def may_send(self) -> bool:
        """Return whether messages and commits are sent: by the leader only, never in a dry run."""
        return not self._source.config.dry_run and self._leading.may_act()

    def _hindrance(self) -> str:
        """Return why this replica may not lead: a dry run never takes the Lease."""
        return "this is a dry run" if self._source.config.dry_run else ""

    def notify(self, source: str) -> None:
        """Start the next cycle now, and record which source asked for it."""
        if self._cluster is not None:
            self._cluster.signal.notify(source)

    def _gained_lead(self) -> None:
        self.board.lead_gained()
        self.notify("election")

    def _who_leads(self) -> LeadershipView:
        ours = self._leadership
        if ours is None:
            return LeadershipView(enabled=self._source.config.leader_election.enabled, leads=False)
        return LeadershipView(
            enabled=ours.enabled, leads=ours.may_act(), holder=ours.holder, trouble=ours.trouble
        )

    def _reporting(self) -> Reporting:
        return Reporting(
            source=self._source,
            clock=self._clock,
            board=self.board,
            metrics=self._metrics,
            branch=self.branch,
            leadership=self._leading,
            may_send=self.may_send,
            cloud_seen=self._cloud_seen,
        )

    def _cloud_seen(self, cloud: CloudState) -> None:
        self._cloud = cloud

    def wake(self) -> None:
        """Wake the loop so that it stops."""
        if self._cluster is not None:
            self._cluster.wake()

    def stop(self) -> None:
        """End the loop."""
        self._clock.stop.set()
        self.wake()

    def _is_synced(self) -> bool:
        return self._cluster is not None and self._cluster.synced

    @property
    def cloud(self) -> CloudState | None:
        """Return what EC2 answered last; None: nothing yet."""
        return self._cloud

    def config_refused(self, error: ReconcilerError, file: str) -> None:
        """Report a config that cannot be used; the previous one stays in force."""
        self._config.refused(error, file)

    def show_config(self) -> None:
        """Show which config is in force."""
        self._config.show()


def _access_of(config: SectorConfig) -> AccessRules:
    """Return the access rules that the config asks for; UsageError without a token."""
    host, _ = web_address(config.listen)
    rules = AccessRules(
        hosts=frozenset(name.lower() for name in (*config.listen_hosts, host) if name),
        token_file=Path(config.listen_token_file) if config.listen_token_file else None,
    )
    rules.check_token_file()
    return rules
