"""Actions that failed or were refused, and have not succeeded since."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from reconciler.loops.describe import Value, describe
from reconciler.model.actions import AnyAction, EvictPod, SetCapacity, TerminateInstance
from reconciler.model.cluster import Pod
from reconciler.model.errors import (
    Conflict,
    NotFound,
    OutcomeUnknown,
    Refused,
    Throttled,
    Unavailable,
)
from reconciler.model.outcome import Outcome
from reconciler.planner.cool_off import COOL_OFF_MAX

FAILING_SECONDS: Final = 900.0
"""A failure that is not repeated for this long is over: its action is not needed any more."""
EVICTIONS_FAIL_SECONDS: Final = FAILING_SECONDS + COOL_OFF_MAX.total_seconds()
"""The same for evictions: after a drain that failed, the node rests before the next one."""
EACH_TIME_FOR: Final = timedelta(minutes=2)
"""How long a call has to fail at each try before it is reported, whatever the answer is."""
EACH_TIME_MIN: Final = 3
"""How often in addition: another program may change a target right before us, now and then."""
_ACTIONS_MAX: Final = 1000
REFUSALS: Final = frozenset(each.__name__ for each in (Conflict, NotFound, Refused, Throttled))
"""What EC2, Auto Scaling and the API server answer now and then while all is well."""
_FAILURES: Final = REFUSALS | {OutcomeUnknown.__name__, Unavailable.__name__}
"""Denials and want of capacity have causes of their own, whether or not they last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAction:
    """One action that ended."""

    at: datetime
    outcome: Outcome
    since: datetime | None = None
    """When it failed or was refused first, with no success since then; None: it succeeded."""
    times: int = 0
    """How often it was tried since then."""

    @property
    def fails_each_time(self) -> bool:
        """Return whether it has been refused for minutes; a call of EC2 also if it failed."""
        if self.since is None:
            return False
        counted = _FAILURES if is_of_cloud(self.outcome.action) else REFUSALS
        lasts = self.at - self.since >= EACH_TIME_FOR and self.times >= EACH_TIME_MIN
        return lasts and self.outcome.error in counted


@dataclass(slots=True)
class FailingActions:
    """Keeps each action that failed or was refused until the same one succeeds."""

    _kept: dict[tuple[Value, ...], PastAction] = field(default_factory=dict)
    """By the action's identity; the one that was tried last is the last."""

    def note(self, past: PastAction) -> None:
        """Note an action that ended."""
        outcome = past.outcome
        if outcome.kind == "refused" and not outcome.error:
            return  # it was not tried, as an earlier step failed
        key = describe(outcome.action).identity
        before = self._kept.pop(key, None)
        routine = outcome.error not in REFUSALS or isinstance(outcome.action, EvictPod)
        if outcome.settled or (outcome.kind == "refused" and routine):
            return  # a refusal is routine: a budget, or instances that EC2 protects
        since, times = past.at, 0
        if before is not None and before.since is not None and not _is_over(before, past.at):
            since, times = before.since, before.times
        self._kept[key] = PastAction(at=past.at, outcome=outcome, since=since, times=times + 1)
        if len(self._kept) > _ACTIONS_MAX:
            del self._kept[next(iter(self._kept))]

    def forget_gone(self, pods: Iterable[Pod]) -> None:
        """Forget failed evictions of pods that are not among these: they are gone by now."""
        evicted = {
            key: evict_pod.pod for key, past in self._kept.items() if (evict_pod := _eviction(past))
        }
        if evicted:
            wanted = frozenset(evicted.values())
            there = {pod.key for pod in pods if pod.key in wanted}
            for key, pod in evicted.items():
                if pod not in there:
                    del self._kept[key]

    def at(self, now: datetime) -> tuple[PastAction, ...]:
        """Return those that are not over, newest first: refused ones only when that lasts."""
        found = (
            past
            for past in self._kept.values()
            if not _is_over(past, now) and (past.outcome.kind != "refused" or past.fails_each_time)
        )
        return tuple(sorted(found, key=lambda past: past.at, reverse=True))


def is_of_cloud(action: AnyAction) -> bool:
    """Return whether EC2 or Auto Scaling carries it out, not the API server."""
    return isinstance(action, SetCapacity | TerminateInstance)


def _is_over(past: PastAction, now: datetime) -> bool:
    lasts = EVICTIONS_FAIL_SECONDS if _eviction(past) else FAILING_SECONDS
    return (now - past.at).total_seconds() >= lasts


def _eviction(past: PastAction) -> EvictPod | None:
    action = past.outcome.action
    return action if isinstance(action, EvictPod) else None
