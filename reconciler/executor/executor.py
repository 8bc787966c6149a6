"""The order of execution: one failure ends only what depends on it."""

from collections.abc import Callable, Iterable
from typing import Protocol

from reconciler.executor.handlers import Sides, carry_out
from reconciler.model.actions import AnyAction, SetCapacity
from reconciler.model.errors import (
    Conflict,
    NotFound,
    OutcomeUnknown,
    PortError,
    Refused,
    Throttled,
)
from reconciler.model.outcome import Outcome, OutcomeKind

Report = Callable[[Outcome], None]


class Executor(Protocol):
    """Whatever carries plans out."""

    def execute(self, actions: Iterable[AnyAction], report: Report) -> tuple[Outcome, ...]:
        """Carry the actions out in order; `report` hears of each as it ends."""
        ...


def subject_of(action: AnyAction) -> str:
    """What an action is about: later actions on the same subject depend on it."""
    if isinstance(action, SetCapacity):
        return f"fleet {action.region}/{action.fleet}"
    return f"node {action.node}"


class LiveExecutor:
    """Acts on the live cluster and cloud."""

    def __init__(self, sides: Sides, monotonic_seconds: Callable[[], float]) -> None:
        self._sides = sides
        self._monotonic_seconds = monotonic_seconds

    def execute(self, actions: Iterable[AnyAction], report: Report) -> tuple[Outcome, ...]:
        """Carry the actions out; after a failure its subject is left alone until the next plan."""
        failed: dict[str, str] = {}
        outcomes: list[Outcome] = []
        for action in actions:
            subject = subject_of(action)
            if subject in failed:
                outcome = Outcome(
                    action=action,
                    kind="refused",
                    detail=f"an earlier step failed: {failed[subject]}",
                )
            else:
                outcome = self._try(action)
            if outcome.kind in {"refused", "failed", "unknown"}:
                failed.setdefault(subject, outcome.detail)
            outcomes.append(outcome)
            report(outcome)
        return tuple(outcomes)

    def _try(self, action: AnyAction) -> Outcome:
        began = self._monotonic_seconds()
        kind: OutcomeKind
        detail = ""
        try:
            kind = carry_out(action, self._sides)
        except PortError as error:
            kind, detail = _kind_of(error), str(error)
        return Outcome(
            action=action,
            kind=kind,
            detail=detail,
            seconds=self._monotonic_seconds() - began,
        )


def _kind_of(error: PortError) -> OutcomeKind:
    """Refused: planning afresh will settle it. Failed: someone may have to look."""
    if isinstance(error, OutcomeUnknown):
        return "unknown"
    if isinstance(error, Refused | Conflict | NotFound | Throttled):
        return "refused"
    return "failed"


class DryRunExecutor:
    """Reports what would be done."""

    def execute(self, actions: Iterable[AnyAction], report: Report) -> tuple[Outcome, ...]:
        """Change nothing."""
        outcomes = tuple(Outcome(action=action, kind="dry-run") for action in actions)
        for outcome in outcomes:
            report(outcome)
        return outcomes
