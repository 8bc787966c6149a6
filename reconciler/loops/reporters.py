"""Several reporters as one, and one that reports only while a condition holds."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from reconciler.loops.reconcile_loop import CycleReport, Reporter
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot


@runtime_checkable
class Forgetful(Protocol):
    """A reporter that notes within a cycle what it reports at its end."""

    def forget(self) -> None:
        """Drop what was noted: it would be reported much later."""
        ...


class Gated:
    """Passes calls to another reporter only while a condition holds; a standby reports nothing.

    Args:
        reporter: Gets the calls.
        holds: Asked each time.
    """

    def __init__(self, reporter: Reporter, holds: Callable[[], bool]) -> None:
        self._reporter = reporter
        self._holds = holds

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Pass the plan on while the condition holds."""
        if self._holds():
            self._reporter.plan_made(snapshot, plan)

    def action_ended(self, outcome: Outcome) -> None:
        """Pass the outcome on while the condition holds."""
        if self._holds():
            self._reporter.action_ended(outcome)

    def cycle_ended(self, report: CycleReport) -> None:
        """Pass the cycle on while the condition holds; else what it noted is dropped."""
        if self._holds():
            self._reporter.cycle_ended(report)
        elif isinstance(self._reporter, Forgetful):
            self._reporter.forget()


class Reporters:
    """Passes calls to each of several reporters, in order.

    Args:
        reporters: Get the calls.
    """

    def __init__(self, reporters: Sequence[Reporter]) -> None:
        self._reporters = tuple(reporters)

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Pass the plan on."""
        for each in self._reporters:
            each.plan_made(snapshot, plan)

    def action_ended(self, outcome: Outcome) -> None:
        """Pass the outcome on."""
        for each in self._reporters:
            each.action_ended(outcome)

    def cycle_ended(self, report: CycleReport) -> None:
        """Pass the cycle on."""
        for each in self._reporters:
            each.cycle_ended(report)
