"""Writes what the second loop does to the log."""

import time
from collections.abc import Callable

import structlog

from reconciler.gitops.repository.status import ClusterStatus, GitopsReport
from reconciler.model.errors import ReconcilerError
from reconciler.telemetry import events
from reconciler.telemetry.repeats import Repeats


class GitopsLog:
    """Logs each turn of the second loop; a repeated turn only at debug level.

    A failure that goes on is logged again every two minutes.

    Args:
        monotonic_seconds: A clock that never jumps.
    """

    def __init__(self, monotonic_seconds: Callable[[], float] = time.monotonic) -> None:
        self._failures = Repeats(monotonic_seconds)
        self._log = structlog.get_logger("gitops")
        self._last: object = None

    def __call__(self, outcome: GitopsReport | ReconcilerError) -> None:
        """Log one turn."""
        if isinstance(outcome, ReconcilerError):
            self._failure(outcome)
            return
        seen = outcome.clusters, outcome.overlooked
        repeated, self._last = seen == self._last, seen
        for reason in () if repeated else outcome.overlooked:
            self._log.warning(events.GITOPS_NO_CONFIG, tip=outcome.tip.short, reason=reason)
        for status in outcome.clusters:
            self._cluster(outcome, status, repeated=repeated)
        for reason in outcome.unshown:
            self._log.warning(events.GITOPS_STATUS_UNSHOWN, reason=reason)

    def _failure(self, error: ReconcilerError) -> None:
        self._last = str(error)
        news = self._failures.is_news(str(error))
        say = self._log.warning if news else self._log.debug
        say(events.GITOPS_TURN_FAILED, reason=str(error), kind=type(error).__name__)

    def _cluster(self, report: GitopsReport, status: ClusterStatus, *, repeated: bool) -> None:
        facts = {
            "cluster": status.cluster,
            "config": status.target.config_path,
            "state": status.state,
            "tip": report.tip.short,
            "commit": status.commit,
            "branch": status.branch or report.branch,
            "reason": status.detail,
        }
        if repeated or status.state == "unchanged":
            self._log.debug(events.GITOPS_CONFIG_SEEN, **facts)
        elif status.healthy:
            self._log.info(events.GITOPS_CONFIG_RENDERED, **facts)
        else:
            faults = [f"{p.line}:{p.column} {p.code}: {p.message}" for p in status.problems]
            self._log.error(events.GITOPS_CONFIG_REFUSED, faults=faults, **facts)
