"""Follows the config of the capacity loop, and shows which one is in force."""

from collections.abc import Callable

import structlog

from reconciler.adapters.system_clock import SystemClock
from reconciler.bootstrap.capacity_loop.config_source import ConfigSource, faults_of
from reconciler.model.errors import ReconcilerError
from reconciler.telemetry import events
from reconciler.web.board import StatusBoard, faults_and_remedy
from reconciler.web.metrics import Metrics
from reconciler.web.view import ConfigInForce


class ConfigReloader:
    """Takes changed configs over, and reports on those that cannot be used.

    Args:
        source: Where configs come from.
        clock: Its time.
        board: The status page.
        metrics: Counts configs.
        branch_trouble: What is wrong with the head of a followed branch; None: nothing.
    """

    def __init__(
        self,
        source: ConfigSource,
        clock: SystemClock,
        board: StatusBoard,
        metrics: Metrics,
        branch_trouble: Callable[[], ReconcilerError | None],
    ) -> None:
        self._log = structlog.get_logger()
        self._source = source
        self._clock = clock
        self._board = board
        self._metrics = metrics
        self._branch_trouble = branch_trouble

    def pause_seconds(self) -> float:
        """Return the longest pause between cycles; each cycle reads the config file again."""
        config = self._source.config
        pause = min(config.sleep_interval_seconds, config.config_refresh_interval_seconds)
        rescheduler = config.spot_rescheduler
        return (
            min(pause, rescheduler.housekeeping_interval_seconds) if rescheduler.enabled else pause
        )

    def follow(self) -> bool:
        """Apply a changed config; return False when there is none or it cannot be used.

        A config that cannot be used is reported, and the previous one stays in force.
        """
        before = self._source.config
        try:
            changed = self._source.refresh()
        except ReconcilerError as error:
            self.refused(error, self._source.offered)
            return False
        if not changed:
            return False
        self._log.info(
            events.CONFIG_RELOADED, file=self._source.path, config_commit=self._source.commit
        )
        self._metrics.config_loaded()
        self.show()
        fixed = self._source.fixed_changes(before)
        if fixed:
            self._log.warning(events.CONFIG_NEEDS_RESTART, keys=list(fixed))
        return True

    def refused(self, error: ReconcilerError, file: str) -> None:
        """Report a config that cannot be used; the previous one stays in force."""
        self._log.error(events.CONFIG_REFUSED, file=file, faults=faults_of(error))
        self._board.config_refused(error)
        self._metrics.config_refused()

    def show(self) -> None:
        """Show which config is in force."""
        config, settings = self._source.config, self._source.settings
        trouble = self._branch_trouble()
        faults, remedy = ((), "") if trouble is None else faults_and_remedy(trouble)
        self._board.config_loaded(
            ConfigInForce(
                file=self._source.path,
                commit=self._source.commit,
                faults=faults,
                remedy=remedy,
                cluster=settings.cluster,
                regions=tuple(settings.regions),
                dry_run=config.dry_run,
                allow_destroy=settings.allow_destroy,
                sleep_seconds=self.pause_seconds(),
                loaded_at=self._clock.now(),
            )
        )
