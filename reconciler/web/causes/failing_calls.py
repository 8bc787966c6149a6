"""Causes for calls of EC2 and Auto Scaling that fail at each try, for minutes."""

from collections.abc import Iterable, Iterator

from reconciler.loops.describe import describe
from reconciler.model.actions import SetCapacity, TerminateInstance
from reconciler.model.errors import Throttled
from reconciler.model.text import duration
from reconciler.web.causes.cause import Cause
from reconciler.web.failing import REFUSALS, PastAction


def causes_of_calls(lasting: Iterable[PastAction]) -> Iterator[Cause]:
    """Yield one cause for all actions of one kind, region and error.

    Args:
        lasting: Actions that fail each time.
    """
    alike: dict[tuple[str, str, str], list[PastAction]] = {}
    for past in lasting:
        action = past.outcome.action
        assert isinstance(action, SetCapacity | TerminateInstance), "no others are asked for"
        key = (describe(action).name, action.region, past.outcome.error)
        alike.setdefault(key, []).append(past)
    for (name, _, error), found in alike.items():
        verb, remedy = _words(error)
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        yield Cause(
            kind="ec2-call-fails",
            level="degraded",
            headline=f"{name} {verb}",
            detail=f"{_detail(found[0])}{more}",
            remedy=remedy,
        )


def _words(error: str) -> tuple[str, str]:
    """Return what becomes of the calls, and what to do about it."""
    if error == Throttled.__name__:
        who = "find who else calls EC2 or Auto Scaling so often in this account and region"
        return "is throttled", f"{who}; it is tried again by itself"
    if error in REFUSALS:
        return "is refused", "read the cause; it is tried again by itself"
    return "fails", "look at AWS's health page; it is tried again by itself"


def _detail(past: PastAction) -> str:
    action, outcome = past.outcome.action, past.outcome
    assert isinstance(action, SetCapacity | TerminateInstance), "no others are asked for"
    of = f"{action.instance} of " if isinstance(action, TerminateInstance) else ""
    lasted = duration(past.at - (past.since or past.at))
    return (
        f"{of}{action.fleet} in {action.region}: {outcome.detail or outcome.error}; each of"
        f" {past.times} tries in {lasted}"
    )
