"""Several reporters as one, and one that reports only while a condition holds."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import structlog

from reconciler.loops.reconcile_loop import CycleReport, Reporter
from reconciler.model.bugs import bug_in_words
from reconciler.model.errors import InvariantViolated
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.telemetry import events
from reconciler.telemetry.repeats import Repeats


@runtime_checkable
class CollectingReporter(Protocol):
    """A reporter that keeps what it reports later, or compares with the next plan."""

    def forget(self) -> None:
        """Drop what was kept: it would be old when this replica leads again."""
        ...


class GatedReporter:
    """Passes calls to another reporter only while a condition holds; a standby reports nothing.

    Args:
        reporter: Receives the calls.
        holds: The condition, checked for each call.
    """

    def __init__(self, reporter: Reporter, holds: Callable[[], bool]) -> None:
        self._reporter = reporter
        self._holds = holds

    @property
    def reporter(self) -> Reporter:
        """Return the reporter that gets the calls."""
        return self._reporter

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Pass the plan on while the condition holds."""
        if self._holds():
            self._reporter.plan_made(snapshot, plan)

    def action_ended(self, outcome: Outcome) -> None:
        """Pass the outcome on while the condition holds."""
        if self._holds():
            self._reporter.action_ended(outcome)

    def cycle_ended(self, report: CycleReport) -> None:
        """Pass the cycle on while the condition holds; else drop what the reporter collected."""
        if self._holds():
            self._reporter.cycle_ended(report)
        elif isinstance(self._reporter, CollectingReporter):
            self._reporter.forget()


class Reporters:
    """Passes calls to each of several reporters, in order.

    If one fails, that is logged, the others are still called and the cycle still acts: reporting
    must never decide whether pods get nodes.

    Args:
        reporters: Receive the calls.
        monotonic_seconds: A monotonic clock; a failure that stays is logged at intervals.
    """

    def __init__(
        self, reporters: Sequence[Reporter], monotonic_seconds: Callable[[], float]
    ) -> None:
        self._reporters = tuple(reporters)
        self._repeats = Repeats(monotonic_seconds)
        self._log: Any = structlog.get_logger()

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Pass the plan on."""
        self._tell_each(lambda reporter: reporter.plan_made(snapshot, plan))

    def action_ended(self, outcome: Outcome) -> None:
        """Pass the outcome on."""
        self._tell_each(lambda reporter: reporter.action_ended(outcome))

    def cycle_ended(self, report: CycleReport) -> None:
        """Pass the cycle on."""
        self._tell_each(lambda reporter: reporter.cycle_ended(report))

    def _tell_each(self, tell: Callable[[Reporter], None]) -> None:
        for each in self._reporters:
            try:
                tell(each)
            except InvariantViolated:
                raise
            except Exception as error:  # noqa: BLE001 - a bug in a report must not stop the cycle
                reporter, reason = _name_of(each), bug_in_words(error)
                if self._repeats.is_news(reporter, reason):
                    self._log.exception(events.REPORT_FAILED, reporter=reporter, reason=reason)


def _name_of(reporter: Reporter) -> str:
    return type(reporter.reporter if isinstance(reporter, GatedReporter) else reporter).__name__
