"""The capacity loop: observe, plan, act, report, wait; nothing else."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from reconciler.executor.executor import Executor
from reconciler.loops.lease.refused_raises import RefusedRaises
from reconciler.loops.lease.saved_state import (
    UnsavedState,
    annotations_to_save,
    with_raises,
    with_refused_ends,
    with_stuck_ends,
)
from reconciler.model.actions import INTERRUPTION, SetCapacity
from reconciler.model.errors import ConfigError, InvariantViolated, PortError, ReconcilerError
from reconciler.model.interruption_annotation import read_annotation
from reconciler.model.notices import MessageId, emptied_messages, settled_messages
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.ports.changes import Changes, HandledChanges, Window
from reconciler.ports.clock import Clock

BATCH_SECONDS = 0.5
"""The time from the first event to the plan, so that a burst of events needs only one plan."""
BATCH_MAX_SECONDS = 2.0
"""A burst that lasts longer is planned for before it ends."""
CALM_SECONDS = 2.0
"""How long changes that need no plan are collected: pods that were bound or ended, nodes that
joined. Without it half of all plans would be made for such changes. With 5 s a third less CPU time
was used than without it, and nodes cost 6 to 9 % more, since each was removed some seconds
later."""
CALM_SHARE = 0.1
"""Of the longest pause: where plans are configured to be more frequent than usual, this wait is
shorter too."""
AWAIT_SECONDS = 2.0
"""EC2 sends no event: while instances are launching, this is how soon a capacity error is seen."""
BACKOFF_SECONDS = 1.0
BACKOFF_MAX_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport:
    """What one cycle saw, planned and did."""

    number: int
    snapshot: Snapshot | None = None
    plan: Plan | None = None
    outcomes: tuple[Outcome, ...] = ()
    acted: bool = False
    """Whether the plan was executed: only by the leader, and not in a dry run."""
    error: ReconcilerError | None = None
    unkept: PortError | None = None
    """Why state that must survive a restart could not be saved; None when it was, or nothing was to
    be saved."""
    gathered_seconds: float = 0.0
    """The length of the batching window before the cycle; 0 if no change started the cycle."""
    handled: tuple[HandledChanges, ...] = ()
    """The sources of changes that the cycle handled, each with the time that took."""
    observe_seconds: float = 0.0
    plan_seconds: float = 0.0
    act_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """Return how long the cycle took."""
        return self.observe_seconds + self.plan_seconds + self.act_seconds

    @property
    def settled(self) -> bool:
        """Return whether nothing failed and nothing is left to be done again."""
        return self.error is None and all(outcome.settled for outcome in self.outcomes)

    @property
    def is_pressed(self) -> bool:
        """Return whether nodes must be empty before an announced end: then no change is batched.

        A recommendation that a node carries, or a change that AWS has announced for later, is no
        such end.
        """
        if self.snapshot is None or self.plan is None:
            return False
        if self.plan.interrupted or any(not outcome.done for outcome in self.plan.notices):
            return True
        texts = (node.annotations.get(INTERRUPTION) for node in self.snapshot.cluster.nodes)
        notices = (read_annotation(text) for text in texts if text)
        return any(n is not None and n.forced and not n.is_over(self.plan.at) for n in notices)

    @property
    def next_step_seconds(self) -> float | None:
        """Return how soon more is done with pods of a node that EC2 takes back; None without one.

        No event announces it, and the usual pause may be longer than the time that is left.
        """
        nodes = self.plan.interrupted if self.plan is not None else ()
        steps = [node.next_step_seconds for node in nodes if node.next_step_seconds is not None]
        return min(steps) - self.seconds if steps else None

    @property
    def awaits_launches(self) -> bool:
        """Return whether EC2 has yet to launch instances that this replica asked for."""
        fleets = self.plan.fleets if self.plan is not None and self.acted else ()
        failed = {
            (outcome.action.fleet, outcome.action.region)
            for outcome in self.outcomes
            if isinstance(outcome.action, SetCapacity) and not outcome.settled
        }
        return any(f.awaited and (f.fleet, f.region) not in failed for f in fleets)


class Reporter(Protocol):
    """Receives plans, outcomes and cycles: logs, metrics, status page, notifications."""

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Called before any action of the plan is executed."""
        ...

    def cycle_ended(self, report: CycleReport) -> None:
        """Called after every cycle, failed ones too."""
        ...

    def action_ended(self, outcome: Outcome) -> None:
        """Called after every action."""
        ...


def _settle_nothing(_messages: Collection[MessageId], _emptied: Collection[MessageId]) -> None:
    """Do nothing; used without an interruption queue."""


def _keep_nothing(_annotations: Mapping[str, str | None]) -> None:
    """Do nothing; used if there is nowhere to save state."""


@dataclass(slots=True, kw_only=True)
class ReconcileLoop:
    """Runs cycles until asked to stop."""

    observe: Callable[[], Snapshot]
    plan: Callable[[Snapshot], Plan]
    executor: Executor
    changes: Changes
    clock: Clock
    reporter: Reporter
    may_act: Callable[[], bool]
    """Whether this replica is the leader; asked right before acting."""
    stopping: Callable[[], bool]
    sleep_seconds: Callable[[], float]
    """The longest pause between cycles."""
    errors_in_a_row_max: int = 100
    remember: Callable[[Mapping[str, str | None]], None] = _keep_nothing
    """Saves annotations where they survive a restart; not called in a dry run."""
    settle: Callable[[Collection[MessageId], Collection[MessageId]], None] = _settle_nothing
    """Deletes messages of the interruption queue; called in each cycle that acts as the leader. Its
    arguments: the messages that need nothing more, as the cycle's snapshot shows, and those about
    empty instances that a lifecycle hook holds."""
    _unsaved: UnsavedState = field(default_factory=UnsavedState)
    _refused: RefusedRaises = field(default_factory=RefusedRaises)
    _planned_at: datetime | None = None
    _cycles: int = field(default=0)
    _gathered_seconds: float = field(default=0.0)
    _errors_in_a_row: int = field(default=0)
    _troubled_in_a_row: int = field(default=0)

    def run(self) -> None:
        """Cycle until `stopping`.

        Raises:
            InvariantViolated: A bug of this program; the process must end.
            ReconcilerError: More failed cycles in a row than allowed.
        """
        while not self.stopping():
            report = self.run_once()
            if report.error is not None and self._errors_in_a_row >= self.errors_in_a_row_max:
                raise report.error
            self._pause(report)

    def run_once(self) -> CycleReport:
        """Run one cycle; errors of the outside world end the cycle, not the loop."""
        self._cycles += 1
        try:
            report = self._cycle()
            report = replace(report, handled=self.changes.acknowledge())
        except (InvariantViolated, ConfigError):
            raise
        except ReconcilerError as error:
            report = CycleReport(number=self._cycles, error=error)
        self._errors_in_a_row = 0 if report.error is None else self._errors_in_a_row + 1
        self._troubled_in_a_row = 0 if report.settled else self._troubled_in_a_row + 1
        self.reporter.cycle_ended(report)
        return report

    def _cycle(self) -> CycleReport:
        now = self.clock.monotonic_seconds
        began = now()
        seen = self.observe()
        snapshot = replace(self._unsaved.recalled(seen), previous_at=self._planned_at)
        observed = now()
        plan = self.plan(snapshot)
        planned = now()
        self._planned_at = snapshot.at
        self.reporter.plan_made(snapshot, plan)
        outcomes: tuple[Outcome, ...] = ()
        unkept: PortError | None = None
        acted = False
        if self.may_act() and not self.stopping():
            outcomes = self.executor.execute(
                plan.actions, self.reporter.action_ended, self.changes.demand_waits
            )
            plan = with_raises(self._refused.noted_in(plan, outcomes), outcomes)
            plan = with_refused_ends(with_stuck_ends(plan, outcomes), outcomes)
            self._unsaved.note(seen, plan, outcomes)
            acted = not self.executor.dry_run
            if acted:
                notices = plan.notices
                self.settle(settled_messages(notices), emptied_messages(notices))
                unkept = self._keep(annotations_to_save(seen, plan, outcomes))
        else:
            self._unsaved.forget()
        return CycleReport(
            number=self._cycles,
            snapshot=snapshot,
            plan=plan,
            outcomes=outcomes,
            acted=acted,
            unkept=unkept,
            gathered_seconds=self._gathered_seconds,
            observe_seconds=observed - began,
            plan_seconds=planned - observed,
            act_seconds=now() - planned,
        )

    def _keep(self, annotations: Mapping[str, str | None]) -> PortError | None:
        """Save what must survive a restart; a failure is returned and stops nothing."""
        if not annotations:
            return None
        try:
            self.remember(annotations)
        except PortError as error:
            return error
        return None

    def _pause(self, report: CycleReport) -> None:
        """Wait for the next event and its batching window; after failures, wait before retrying."""
        self._gathered_seconds = 0.0
        longest = self.sleep_seconds()
        if report.error is not None:
            self.clock.wait_seconds(self._backoff(longest))
            return
        if not report.settled:
            longest = self._backoff(longest)
        if report.awaits_launches:
            longest = min(longest, AWAIT_SECONDS)
        if report.next_step_seconds is not None:
            longest = min(longest, max(BACKOFF_SECONDS, report.next_step_seconds))
        if self.changes.wait_for_change(longest) and not self.stopping():
            calm = min(longest, CALM_SECONDS, CALM_SHARE * self.sleep_seconds())
            calm = BATCH_SECONDS if report.is_pressed else calm
            unhurried = report.plan.demanding if report.plan is not None else frozenset[str]()
            self._gathered_seconds = self.changes.gather(
                Window(BATCH_SECONDS, BATCH_MAX_SECONDS, calm, unhurried)
            )

    def _backoff(self, longest: float) -> float:
        """Return 1 s, doubled with each failed cycle in a row, up to the usual pause."""
        doubled = BACKOFF_SECONDS * 2.0 ** min(self._troubled_in_a_row - 1, 10)
        return min(doubled, longest, BACKOFF_MAX_SECONDS)
