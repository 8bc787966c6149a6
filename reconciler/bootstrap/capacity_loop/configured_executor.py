"""Chooses how plans are executed: live, or only reported in a dry run."""

from collections.abc import Callable, Iterable

from reconciler.bootstrap.capacity_loop.config_source import ConfigSource
from reconciler.executor.executor import DryRunExecutor, Executor, Report
from reconciler.model.actions import AnyAction
from reconciler.model.outcome import Outcome


class ConfiguredExecutor:
    """Executes actions, or only reports them in a dry run; the config may switch at any time.

    Args:
        live: The executor that acts.
        source: Has the config with `dry_run`.
    """

    def __init__(self, live: Executor, source: ConfigSource) -> None:
        self._live = live
        self._dry = DryRunExecutor()
        self._source = source

    @property
    def dry_run(self) -> bool:
        """Return whether the config in force asks for a dry run."""
        return self._source.config.dry_run

    def execute(
        self,
        actions: Iterable[AnyAction],
        report: Report,
        demand_waits: Callable[[], bool] = lambda: False,
    ) -> tuple[Outcome, ...]:
        """Carry the actions out, or only report them in a dry run."""
        executor = self._dry if self.dry_run else self._live
        return executor.execute(actions, report, demand_waits)
