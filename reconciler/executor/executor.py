"""The order of execution: one failure ends only what depends on it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from reconciler.executor.handlers import SingleAction, carry_out
from reconciler.executor.sides import PacedSides, Sides
from reconciler.executor.terminations import Targets, end_together
from reconciler.executor.tokens import Pace
from reconciler.model.actions import AnyAction, SetCapacity, TerminateInstance
from reconciler.model.errors import PortError
from reconciler.model.outcome import Outcome, OutcomeKind, kind_of_error

Report = Callable[[Outcome], None]


class Executor(Protocol):
    """Whatever carries plans out."""

    @property
    def dry_run(self) -> bool:
        """Whether it changes nothing: then nothing may be kept or told outside either."""
        ...

    def execute(self, actions: Iterable[AnyAction], report: Report) -> tuple[Outcome, ...]:
        """Carry the actions out in order; `report` hears of each as it ends."""
        ...


def subject_of(action: AnyAction) -> str:
    """What an action is about: later actions on the same subject depend on it."""
    if isinstance(action, SetCapacity):
        return f"fleet {action.region}/{action.fleet}"
    if isinstance(action, TerminateInstance) and action.node is None:
        return f"instance {action.instance}"
    return f"node {action.node}"


def in_steps(actions: Iterable[AnyAction]) -> Iterator[tuple[AnyAction, ...]]:
    """The actions in order, terminations that lower the same fleet's target taken together.

    A fleet is modified once for all of them; what lies between keeps its place, and nothing is
    moved ahead of an earlier action on the same subject.
    """
    left = list(actions)
    while left:
        first = left.pop(0)
        group = [first]
        if isinstance(first, TerminateInstance) and first.decrement:
            busy: set[str] = set()
            for each in list(left):
                if _ends_with(first, each) and subject_of(each) not in busy:
                    group.append(each)
                    left.remove(each)
                else:
                    busy.add(subject_of(each))
        yield tuple(group)


def _ends_with(first: TerminateInstance, other: AnyAction) -> bool:
    return (
        isinstance(other, TerminateInstance)
        and other.decrement
        and (other.provider, other.region, other.fleet_id)
        == (first.provider, first.region, first.fleet_id)
    )


class LiveExecutor:
    """Acts on the live cluster and cloud.

    Args:
        sides: What is acted on.
        monotonic_seconds: A clock that never jumps.
        stopping: Whether the program is asked to stop: what has not begun is then left.
        pace: How often each API may be called; the usual limits without it.
    """

    def __init__(
        self,
        sides: Sides,
        monotonic_seconds: Callable[[], float],
        stopping: Callable[[], bool] = lambda: False,
        pace: Pace | None = None,
    ) -> None:
        self._sides = PacedSides(sides, pace or Pace(monotonic_seconds))
        self._monotonic_seconds = monotonic_seconds
        self._stopping = stopping

    @property
    def dry_run(self) -> bool:
        """It acts."""
        return False

    def execute(self, actions: Iterable[AnyAction], report: Report) -> tuple[Outcome, ...]:
        """Carry the actions out; after a failure its subject is left alone until the next plan."""
        failed: dict[str, str] = {}
        targets: Targets = {}
        outcomes: list[Outcome] = []
        for step in in_steps(actions):
            if self._stopping():
                break
            for outcome in self._step(step, failed, targets):
                if not outcome.settled:
                    failed.setdefault(subject_of(outcome.action), outcome.detail)
                if isinstance(outcome.action, SetCapacity):
                    # A raise that failed, too: a node that the plan ends from there must stay.
                    place = (outcome.action.region, outcome.action.id)
                    targets[place] = outcome.action.to_capacity
                outcomes.append(outcome)
                report(outcome)
        return tuple(outcomes)

    def _step(
        self, step: Sequence[AnyAction], failed: dict[str, str], targets: Targets
    ) -> Iterator[Outcome]:
        """The outcomes of one step, those of what depends on a failure first."""
        ready = [each for each in step if subject_of(each) not in failed]
        for action in step:
            if action not in ready:
                why = f"an earlier step failed: {failed[subject_of(action)]}"
                yield Outcome(action=action, kind="refused", detail=why)
        endings = [each for each in ready if isinstance(each, TerminateInstance)]
        if endings:
            yield from end_together(endings, self._sides, self._monotonic_seconds, targets)
        for single in ready:
            if not isinstance(single, TerminateInstance):
                yield self._try(single)

    def _try(self, action: SingleAction) -> Outcome:
        began = self._monotonic_seconds()
        kind: OutcomeKind
        detail = error = ""
        try:
            kind = carry_out(action, self._sides)
        except PortError as raised:
            kind, detail, error = kind_of_error(raised), str(raised), type(raised).__name__
        seconds = self._monotonic_seconds() - began
        return Outcome(action=action, kind=kind, detail=detail, error=error, seconds=seconds)


class DryRunExecutor:
    """Reports what would be done."""

    @property
    def dry_run(self) -> bool:
        """It never acts."""
        return True

    def execute(self, actions: Iterable[AnyAction], report: Report) -> tuple[Outcome, ...]:
        """Change nothing."""
        outcomes = tuple(Outcome(action=action, kind="dry-run") for action in actions)
        for outcome in outcomes:
            report(outcome)
        return outcomes
