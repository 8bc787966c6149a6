"""Who carries plans out: the live executor, or one that only says what it would do."""

from collections.abc import Callable, Iterable

from reconciler.bootstrap.config_source import ConfigSource
from reconciler.executor.executor import DryRunExecutor, Executor, Report
from reconciler.model.actions import AnyAction
from reconciler.model.outcome import Outcome


class ConfiguredExecutor:
    """Acts, or in a dry run only says what it would do; the config may change that at any time.

    Args:
        live: Who acts.
        source: Whose config says which.
    """

    def __init__(self, live: Executor, source: ConfigSource) -> None:
        self._live = live
        self._dry = DryRunExecutor()
        self._source = source

    @property
    def dry_run(self) -> bool:
        """What the config says now."""
        return self._source.config.dry_run

    def execute(
        self,
        actions: Iterable[AnyAction],
        report: Report,
        demand_waits: Callable[[], bool] = lambda: False,
    ) -> tuple[Outcome, ...]:
        """Carry the actions out, or not."""
        executor = self._dry if self.dry_run else self._live
        return executor.execute(actions, report, demand_waits)
