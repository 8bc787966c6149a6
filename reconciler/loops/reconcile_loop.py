"""The capacity loop: observe, plan, act, report, wait; nothing else."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from reconciler.executor.executor import Executor
from reconciler.model.errors import ConfigError, InvariantViolated, ReconcilerError
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.ports.clock import Clock

BATCH_SECONDS = 0.5
"""From the first event to the plan, so that a burst is planned as one."""
BACKOFF_SECONDS = 1.0
BACKOFF_MAX_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport:
    """One cycle, whatever came of it."""

    number: int
    snapshot: Snapshot | None = None
    plan: Plan | None = None
    outcomes: tuple[Outcome, ...] = ()
    error: ReconcilerError | None = None
    observe_seconds: float = 0.0
    plan_seconds: float = 0.0
    act_seconds: float = 0.0

    @property
    def settled(self) -> bool:
        """Nothing failed and nothing was left to be done again."""
        return self.error is None and all(
            o.kind in {"applied", "already-done", "dry-run"} for o in self.outcomes
        )


class Reporter(Protocol):
    """Who hears of cycles: log, metrics, status page, notifications."""

    def cycle_ended(self, report: CycleReport) -> None:
        """After every cycle, failed ones too."""
        ...

    def action_ended(self, outcome: Outcome) -> None:
        """After every action."""
        ...


class Changes(Protocol):
    """What wakes the loop."""

    def wait_for_change(self, timeout_seconds: float) -> bool:
        """Block until something changed since the last observation; False after the time."""
        ...


@dataclass(slots=True, kw_only=True)
class ReconcileLoop:
    """Runs cycles until told to stop."""

    observe: Callable[[], Snapshot]
    plan: Callable[[Snapshot], Plan]
    executor: Executor
    changes: Changes
    clock: Clock
    reporter: Reporter
    may_act: Callable[[], bool]
    """Whether this replica is the leader, asked right before acting."""
    stopping: Callable[[], bool]
    sleep_seconds: Callable[[], float]
    """The longest pause between cycles."""
    errors_in_a_row_max: int = 100
    _cycles: int = field(default=0)
    _errors_in_a_row: int = field(default=0)

    def run(self) -> None:
        """Cycle until `stopping`.

        Raises:
            InvariantViolated: A bug of ours; the process must end.
            ReconcilerError: More failed cycles in a row than allowed.
        """
        while not self.stopping():
            report = self.run_once()
            if report.error is not None and self._errors_in_a_row >= self.errors_in_a_row_max:
                raise report.error
            self._pause(report)

    def run_once(self) -> CycleReport:
        """One cycle; errors of the outside world end it, not the loop."""
        self._cycles += 1
        try:
            report = self._cycle()
            self._errors_in_a_row = 0
        except (InvariantViolated, ConfigError):
            raise
        except ReconcilerError as error:
            self._errors_in_a_row += 1
            report = CycleReport(number=self._cycles, error=error)
        self.reporter.cycle_ended(report)
        return report

    def _cycle(self) -> CycleReport:
        now = self.clock.monotonic_seconds
        began = now()
        snapshot = self.observe()
        observed = now()
        plan = self.plan(snapshot)
        planned = now()
        outcomes: tuple[Outcome, ...] = ()
        if self.may_act() and not self.stopping():
            outcomes = self.executor.execute(plan.actions, self.reporter.action_ended)
        return CycleReport(
            number=self._cycles,
            snapshot=snapshot,
            plan=plan,
            outcomes=outcomes,
            observe_seconds=observed - began,
            plan_seconds=planned - observed,
            act_seconds=now() - planned,
        )

    def _pause(self, report: CycleReport) -> None:
        """Wait for the next event and let its burst gather; sooner again after trouble."""
        if report.error is not None:
            self.clock.wait_seconds(self._backoff(self._errors_in_a_row))
            return
        longest = self.sleep_seconds()
        if not report.settled:
            longest = min(longest, BACKOFF_SECONDS)
        if self.changes.wait_for_change(longest) and not self.stopping():
            self.clock.wait_seconds(BATCH_SECONDS)

    @staticmethod
    def _backoff(failures: int) -> float:
        return float(min(BACKOFF_MAX_SECONDS, BACKOFF_SECONDS * 2 ** min(failures - 1, 10)))
