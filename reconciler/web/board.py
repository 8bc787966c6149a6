"""The state of the running program, kept for requests over HTTP."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeVar

from reconciler.gitops.drift.live import LiveDrift
from reconciler.gitops.repository.status import ClusterProgress
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.actions import SetCapacity, TerminateInstance
from reconciler.model.errors import ConfigError, PortError, Problem, ReconcilerError
from reconciler.model.ids import Region
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.ports.clock import Clock
from reconciler.telemetry.scrubbing import Scrubber
from reconciler.web.failing import FAILING_SECONDS, FailingActions, PastAction
from reconciler.web.history import History
from reconciler.web.unbound_pods import UnboundPods
from reconciler.web.view import ALONE, ConfigInForce, LeadershipView, View

E = TypeVar("E", bound=ReconcilerError)

RECENT_ACTIONS_MAX: Final = 100
LOST_SECONDS: Final = FAILING_SECONDS
"""For this long a replica says that it lost the lead, though another one has it: it was not asked
to give it up. Then it is a standby like any other."""
ALIVE_SECONDS: Final = 180.0
"""In addition to three pauses: a cycle whose calls all run into their time limits may take this
long."""


class StatusBoard:
    """A Reporter that keeps the state. One thread writes, any thread reads.

    Messages of other systems are kept without secrets, as in the log, since the status page shows
    them.

    Args:
        clock: For the times of events.
        version: Of this program.
        synced: Whether the caches of the cluster are complete and fresh.
        leadership: Whether this replica may act, and who holds the Lease.
        scrubber: Masks secrets in the texts of errors.
    """

    def __init__(
        self,
        clock: Clock,
        version: str,
        synced: Callable[[], bool],
        leadership: Callable[[], LeadershipView] = lambda: ALONE,
        scrubber: Scrubber | None = None,
    ) -> None:
        self._scrubbed = (scrubber or Scrubber()).text
        self._clock = clock
        self._synced = synced
        self._leadership = leadership
        self._lock = threading.Lock()
        self._actions: deque[PastAction] = deque(maxlen=RECENT_ACTIONS_MAX)
        self._has_led = False
        """Whether this replica has led since it started; set by the thread of the election."""
        self._lost_seconds: float | None = None
        """Monotonic time at which it lost the lead; None before that, and while it leads again."""
        self.history = History(clock.now)
        self._failing = FailingActions()
        self._unbound = UnboundPods()
        self._started_seconds = clock.monotonic_seconds()
        self._view = View(
            version=version, started_at=clock.now(), turned_seconds=clock.monotonic_seconds()
        )

    @property
    def view(self) -> View:
        """Return the present state."""
        with self._lock:
            return replace(
                self._view,
                actions=tuple(reversed(self._actions)),
                failing=self._failing.at(self._clock.now()),
                unbound=self._unbound.lasting,
            )

    def is_alive(self) -> bool:
        """Return whether the loop is alive; failed and slow cycles count, a stuck one does not."""
        view = self._view
        bound = ALIVE_SECONDS + 3 * view.config.sleep_seconds
        return self._clock.monotonic_seconds() - view.turned_seconds < bound

    def is_ready(self) -> bool:
        """Return whether plans are made: the caches are fresh, and EC2 answered at least once."""
        return self._synced() and self._view.plan is not None

    @property
    def unready_because(self) -> str:
        """Return what a program that is not ready waits for."""
        if not self._synced():
            return "caches are not synced"
        error = self._view.last_cycle.error if self._view.last_cycle is not None else None
        return "no plan was made yet" + (f": {error}" if error is not None else "")

    @property
    def now(self) -> datetime:
        """Return the clock's time."""
        return self._clock.now()

    @property
    def leadership(self) -> LeadershipView:
        """Return which of the replicas acts now."""
        view = self._leadership()
        if view.trouble:
            view = replace(view, trouble=self._scrubbed(view.trouble))
        lost = view.enabled and self._has_led and not view.leads
        return replace(view, lost=lost and not self._another_has_led_for_long(view))

    def _another_has_led_for_long(self, view: LeadershipView) -> bool:
        since = self._lost_seconds
        # While this replica cannot read the Lease, the holder that it knows of may be itself.
        if not view.holder or view.trouble or since is None:
            return False
        return self._clock.monotonic_seconds() - since >= LOST_SECONDS

    def lead_gained(self) -> None:
        """Note that this replica began to lead; thread-safe."""
        self._has_led = True
        self._lost_seconds = None
        because = f"current leader: {self._leadership().holder or 'unknown'}"
        self.history.note("leadership", "began to lead", "this replica", because)

    def lead_lost(self, why: str) -> None:
        """Note that this replica leads no longer; thread-safe."""
        with self._lock:
            self._view = replace(self._view, progress=())
        self._lost_seconds = self._clock.monotonic_seconds()
        self.history.note("leadership", "leads no longer", "this replica", self._scrubbed(why))

    def success_age_seconds(self) -> float:
        """Return the time since the last cycle without an error, or since the start."""
        succeeded = self._view.succeeded_seconds
        since = self._started_seconds if succeeded is None else succeeded
        return self._clock.monotonic_seconds() - since

    def config_loaded(self, config: ConfigInForce) -> None:
        """Note that a config came into force."""
        faults = tuple(map(self._scrubbed, config.faults))
        config = replace(config, faults=faults, remedy=self._scrubbed(config.remedy))
        with self._lock:
            self._view = replace(self._view, config=config)
        if config.file:
            self.history.note("config", "config in force", config.file, config.commit)

    def config_refused(self, error: ReconcilerError) -> None:
        """Note that the newest config cannot be used; the last valid one stays in force."""
        reasons, remedy = faults_and_remedy(error)
        faults = tuple(map(self._scrubbed, reasons))
        with self._lock:
            config = replace(self._view.config, faults=faults, remedy=self._scrubbed(remedy))
            self._view = replace(self._view, config=config)
        self.history.note("config", "config refused", config.file, faults[0])

    def second_loop_ended(
        self,
        text: str,
        progress: tuple[ClusterProgress, ...] | None = None,
        *,
        failed: bool = False,
    ) -> None:
        """Note the second loop's turn; thread-safe.

        Args:
            text: Its result in one line.
            progress: How far each config has come; None: what was known stays. A replica that
                stands by shows none, as the leader's is newer.
            failed: Whether the turn failed, or its push was refused.
        """
        leads, now = self._leadership().leads, self._clock.monotonic_seconds()
        scrubbed = None
        if progress is not None:
            scrubbed = tuple(replace(e, detail=self._scrubbed(e.detail)) for e in progress)
        with self._lock:
            view = self._view
            since = view.second_loop_failing_seconds
            known = view.progress if scrubbed is None else scrubbed
            self._view = replace(
                view,
                second_loop=self._scrubbed(text),
                second_loop_succeeded_seconds=view.second_loop_succeeded_seconds if failed else now,
                second_loop_failing_seconds=(now if since is None else since) if failed else None,
                progress=known if leads else (),
            )

    def second_loop_success_age_seconds(self) -> float | None:
        """Return the time since its last turn that did not fail, or the start; None: none runs."""
        view = self._view
        if not view.second_loop:
            return None
        succeeded = view.second_loop_succeeded_seconds
        since = self._started_seconds if succeeded is None else succeeded
        return self._clock.monotonic_seconds() - since

    def second_loop_failing_seconds(self) -> float:
        """Return for how long every turn of the second loop has failed; 0: the last did not."""
        since = self._view.second_loop_failing_seconds
        return 0.0 if since is None else self._clock.monotonic_seconds() - since

    def drift_found(self, drift: tuple[LiveDrift, ...]) -> None:
        """Note a change in the drift between config and EC2."""
        with self._lock:
            self._view = replace(self._view, drift=drift)

    def queue_troubled(self, error: PortError | None) -> None:
        """Note that calls to the interruption queue fail, or (None) work again; thread-safe."""
        text = "" if error is None else self._scrubbed(str(error))
        with self._lock:
            self._view = replace(self._view, queue_trouble=text)
        if text:
            self.history.note("trouble", "interruption queue fails", "SQS", text)

    def answered(self) -> None:
        """Note that AWS answered a call that the loop waits for; thread-safe.

        A cycle of many calls to a slow EC2 takes minutes, and a restart would not make it faster.
        """
        with self._lock:
            self._view = replace(self._view, turned_seconds=self._clock.monotonic_seconds())

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Note a plan that is about to be executed."""
        requested = {(fleet.fleet, fleet.region): fleet.current for fleet in plan.fleets}
        with self._lock:
            self._failing.forget_gone(snapshot.cluster.pods)
            turned = self._clock.monotonic_seconds()
            self._view = replace(
                self._view,
                plan=plan,
                snapshot=snapshot,
                requested=requested,
                turned_seconds=turned,
            )
        for resume in plan.resumes:
            what = "update resumed" if resume.done else "update not resumed"
            self.history.note(
                "mark" if resume.done else "trouble", what, resume.fleet, resume.because
            )

    def action_ended(self, outcome: Outcome) -> None:
        """Note an action that ended."""
        outcome = replace(outcome, detail=self._scrubbed(outcome.detail))
        with self._lock:
            past = PastAction(at=self._clock.now(), outcome=outcome)
            self._actions.append(past)
            turned = self._clock.monotonic_seconds()
            requested = requested_after(self._view.requested, outcome)
            self._view = replace(self._view, turned_seconds=turned, requested=requested)
            self._failing.note(past)
            if outcome.kind in {"failed", "unknown"}:
                self._view = replace(self._view, last_failed=past)
        self.history.ended(outcome)

    def _without_secrets(self, error: E) -> E:
        """Return the same error, with secrets in its texts masked."""
        made = type(error).__new__(type(error))
        made.__dict__.update(error.__dict__)
        made.where, made.what, made.hint = map(
            self._scrubbed, (error.where, error.what, error.hint)
        )
        made.args = (made.where, made.what, made.hint)
        return made

    def cycle_ended(self, report: CycleReport) -> None:
        """Note a cycle that ended, whatever its result."""
        now = self._clock.monotonic_seconds()
        if report.error is not None:
            report = replace(report, error=self._without_secrets(report.error))
            kind = type(report.error).__name__
            self.history.note("trouble", "cycle failed", kind, str(report.error))
        with self._lock:
            view = replace(
                self._view,
                last_cycle=replace(report, snapshot=None, plan=None),
                cycles=report.number,
                turned_seconds=now,
            )
            if report.plan is not None:
                self._unbound.note(report.plan)
            if report.error is None:
                since = self._view.unsaved_since or self._clock.now()
                self._view = replace(
                    view,
                    unsaved_since=None if report.unkept is None else since,
                    errors_in_a_row=0,
                    succeeded_seconds=now,
                    succeeded_at=self._clock.now(),
                )
            else:
                self._unbound.failed()
                self._view = replace(view, errors_in_a_row=view.errors_in_a_row + 1)
        if report.error is None and view.plan is not None:
            self.history.sampled(view.plan, view.requested)


def faults_and_remedy(error: ReconcilerError) -> tuple[tuple[str, ...], str]:
    """Return why a config is refused, and what ends that, as in `ConfigInForce`."""
    if isinstance(error, ConfigError):
        return tuple(_fault(error.file, problem) for problem in error.problems), ""
    return (str(ReconcilerError(error.where, error.what)),), error.hint


def _fault(file: str, problem: Problem) -> str:
    """Return a fault with its place; one of the whole file has no line, and names the file."""
    if not problem.line:
        return f"{file}: {problem.message}"
    return f"{problem.line}:{problem.column}: {problem.code}: {problem.message}"


def requested_after(
    requested: Mapping[tuple[str, Region], int], outcome: Outcome
) -> Mapping[tuple[str, Region], int]:
    """Return EC2's targets after one more action."""
    action = outcome.action
    if outcome.kind != "applied" or not isinstance(action, SetCapacity | TerminateInstance):
        return requested
    place = (action.fleet, action.region)
    if isinstance(action, SetCapacity):
        return {**requested, place: action.to_capacity}
    if action.decrement and place in requested:
        return {**requested, place: max(0, requested[place] - 1)}
    return requested
