"""Several reporters as one, and one that is silent at times."""

from collections.abc import Callable, Sequence

from reconciler.loops.reconcile_loop import CycleReport, Reporter
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot


class Gated:
    """Tells another reporter only while a condition holds; what a standby sees is no news.

    Args:
        reporter: Who is told.
        holds: Asked each time.
    """

    def __init__(self, reporter: Reporter, holds: Callable[[], bool]) -> None:
        self._reporter = reporter
        self._holds = holds

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """A plan was made."""
        if self._holds():
            self._reporter.plan_made(snapshot, plan)

    def action_ended(self, outcome: Outcome) -> None:
        """An action ended."""
        if self._holds():
            self._reporter.action_ended(outcome)

    def cycle_ended(self, report: CycleReport) -> None:
        """A cycle ended."""
        if self._holds():
            self._reporter.cycle_ended(report)


class Reporters:
    """Tells each of several reporters, in order.

    Args:
        reporters: Who is told.
    """

    def __init__(self, reporters: Sequence[Reporter]) -> None:
        self._reporters = tuple(reporters)

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """A plan was made."""
        for each in self._reporters:
            each.plan_made(snapshot, plan)

    def action_ended(self, outcome: Outcome) -> None:
        """An action ended."""
        for each in self._reporters:
            each.action_ended(outcome)

    def cycle_ended(self, report: CycleReport) -> None:
        """A cycle ended."""
        for each in self._reporters:
            each.cycle_ended(report)
