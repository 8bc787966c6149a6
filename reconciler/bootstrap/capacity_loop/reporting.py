"""Builds the reporters of the capacity loop: page, metrics, log, Kubernetes Events, Slack."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from reconciler.adapters.kubernetes import KubernetesEvents, connect
from reconciler.adapters.recording import BucketLog, DirectoryLog, place_in_s3, s3_client
from reconciler.adapters.slack import SlackNotifier
from reconciler.adapters.system_clock import SystemClock
from reconciler.bootstrap.capacity_loop.config_source import ConfigSource
from reconciler.bootstrap.capacity_loop.followed_branch import FollowedBranch
from reconciler.config.sections import Recording
from reconciler.gitops.drift.live import LiveDrift, live_drift
from reconciler.loops.lease.leadership import Leadership
from reconciler.loops.reconcile_loop import Reporter
from reconciler.loops.reporters.combined import GatedReporter, Reporters
from reconciler.loops.reporters.demand_recorder import DemandRecorder
from reconciler.loops.reporters.drift_reporter import DriftReporter
from reconciler.loops.reporters.event_reporter import EventReporter
from reconciler.loops.reporters.log_reporter import LogReporter
from reconciler.loops.reporters.notify_reporter import NotifyReporter
from reconciler.loops.reporters.trace_reporter import TraceReporter
from reconciler.model.errors import PortError
from reconciler.model.snapshot import CloudState
from reconciler.telemetry import events
from reconciler.telemetry.repeats import Repeats
from reconciler.web.board import StatusBoard
from reconciler.web.metrics import Metrics

if TYPE_CHECKING:
    from reconciler.adapters.opentelemetry import OtlpSpans


def failures_logged(
    event: str, monotonic_seconds: Callable[[], float]
) -> Callable[[PortError], None]:
    """Return a function that logs failures under an event, repeats of one kind at `debug`."""
    repeats = Repeats(monotonic_seconds)
    log = structlog.get_logger()

    def log_failure(error: PortError) -> None:
        news = repeats.is_news(event, type(error).__name__)
        (log.warning if news else log.debug)(event, reason=str(error))

    return log_failure


def _say_nothing(text: str) -> None:
    """Send nothing: used without a Slack hook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """Builds the reporters of one capacity loop."""

    source: ConfigSource
    clock: SystemClock
    board: StatusBoard
    metrics: Metrics
    branch: FollowedBranch
    leadership: Leadership
    may_send: Callable[[], bool]
    """Whether this replica is the one that sends messages and Events."""
    cloud_seen: Callable[[CloudState], None]
    """Called with what EC2 answered in each cycle."""

    @contextmanager
    def reporters(self) -> Iterator[Reporters]:
        """Yield status page, metrics, log, Kubernetes Events, and Slack when there is a hook."""
        now = self.clock.monotonic_seconds
        log = LogReporter(now, lambda: self.source.config.max_logging_interval_seconds)
        reporters: list[Reporter] = [self.board, self.metrics, log, self.branch]
        with ExitStack() as stack:
            written = stack.enter_context(closing(self._kubernetes_events()))
            reporters.append(GatedReporter(EventReporter(written), self.may_send))
            tell: Callable[[str], None] = _say_nothing
            hook = self.source.config.notifications.slack_hook.get_secret_value()
            if hook:
                unsent = failures_logged(events.NOTIFICATION_FAILED, now)
                slack = stack.enter_context(closing(SlackNotifier(hook, unsent)))
                reporters.append(GatedReporter(NotifyReporter(slack, now), self.may_send))
                tell = slack.notify
            reporters.append(self._drift_reporter(tell))
            recording = self.source.config.recording
            if recording.path:
                written_down = stack.enter_context(closing(self._demand_log(recording)))
                counted = self.metrics.demand_recorded
                recorder = DemandRecorder(written_down, recording.keep_seconds, counted)
                reporters.append(GatedReporter(recorder, self.may_send))
            endpoint = self.source.config.tracing.endpoint
            if endpoint:
                spans = stack.enter_context(closing(self._spans(endpoint)))
                reporters.append(TraceReporter(spans, self.clock.now))
            yield Reporters(reporters, now)

    def _spans(self, endpoint: str) -> "OtlpSpans":
        """Return the exporter; its SDK is an extra and slow, so it is imported only here."""
        from reconciler.adapters.opentelemetry import OtlpSpans  # noqa: PLC0415 - see above

        return OtlpSpans(
            endpoint,
            {
                "k8s.cluster.name": self.source.settings.cluster,
                "service.instance.id": self.leadership.identity or socket.gethostname(),
            },
        )

    def _demand_log(self, recording: Recording) -> DirectoryLog | BucketLog:
        place, keep = place_in_s3(recording.path), recording.keep_seconds
        log = failures_logged(events.RECORDING_FAILED, self.clock.monotonic_seconds)

        def failed(error: PortError) -> None:
            self.metrics.demand_recorded("failed")
            log(error)

        if place is None:
            return DirectoryLog(Path(recording.path), keep, failed)
        return BucketLog(place, s3_client(), keep, failed)

    def _drift_reporter(self, tell: Callable[[str], None]) -> DriftReporter:
        """Return the reporter of drift: every replica shows it, the leader sends messages."""
        return DriftReporter(
            self._drift,
            self.board.drift_found,
            lambda text: tell(text) if self.may_send() else None,
        )

    def _drift(self, cloud: CloudState) -> tuple[LiveDrift, ...]:
        self.cloud_seen(cloud)
        return live_drift(self.source.config, self.source.settings.regions[0], cloud)

    def _kubernetes_events(self) -> KubernetesEvents:
        """Return Events with connections of their own, so that they delay nothing else."""
        config = self.source.config
        return KubernetesEvents(
            connect(config.kubeconfig, config.kube_context, fence=self.leadership.may_act),
            instance=self.leadership.identity or socket.gethostname(),
            now=self.clock.now,
            monotonic_seconds=self.clock.monotonic_seconds,
            counted=self.metrics.kubernetes_event,
        )
