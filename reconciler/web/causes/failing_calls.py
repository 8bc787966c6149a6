"""Causes for what fails or is refused at each try, for minutes: actions, and saving the state."""

from collections.abc import Iterable, Iterator

from reconciler.loops.describe import describe
from reconciler.model.actions import TerminateInstance
from reconciler.model.errors import Throttled
from reconciler.model.text import duration
from reconciler.web.causes.cause import BoardMoment, Cause
from reconciler.web.failing import EACH_TIME_FOR, REFUSALS, PastAction, is_of_cloud


def causes_of_calls(lasting: Iterable[PastAction]) -> Iterator[Cause]:
    """Yield one cause for all actions of one kind, region and error.

    Args:
        lasting: Actions that fail each time.
    """
    alike: dict[tuple[str, str, str], list[PastAction]] = {}
    for past in lasting:
        text = describe(past.outcome.action)
        region = str(text.facts.get("region") or "")
        alike.setdefault((text.name, region, past.outcome.error), []).append(past)
    for (name, _, error), past_actions in alike.items():
        of_cloud = is_of_cloud(past_actions[0].outcome.action)
        verb, remedy = _of_cloud(error) if of_cloud else _of_cluster(error)
        more = f" (and {len(past_actions) - 1} more)" if len(past_actions) > 1 else ""
        yield Cause(
            kind="ec2-call-fails" if of_cloud else "action-failed",
            level="degraded",
            headline=f"{name} {verb}",
            detail=f"{_detail(past_actions[0])}{more}",
            remedy=remedy,
        )


def state_not_saved(seen: BoardMoment) -> Iterator[Cause]:
    """Yield that the state which must survive a restart has not been saved for minutes."""
    view = seen.view
    since, last = view.unsaved_since, view.last_cycle
    if since is None or last is None or last.unkept is None or view.succeeded_at is None:
        return
    lasted = view.succeeded_at - since
    if lasted < EACH_TIME_FOR:
        return
    yield Cause(
        kind="action-failed",
        level="degraded",
        headline="State is not saved",
        detail=f"{last.unkept}; for {duration(lasted)}",
        remedy="compare the Role with `reconciler manifest`; the next restart forgets cool-offs"
        " and halted updates",
    )


def _of_cloud(error: str) -> tuple[str, str]:
    """Return what becomes of calls to EC2 or Auto Scaling, and what to do about it."""
    if error == Throttled.__name__:
        who = "find who else calls EC2 or Auto Scaling so often in this account and region"
        return "is throttled", f"{who}; it is tried again by itself"
    if error in REFUSALS:
        return "is refused", "read the cause; it is tried again by itself"
    return "fails", "look at AWS's health page; it is tried again by itself"


def _of_cluster(error: str) -> tuple[str, str]:
    """Return what becomes of calls to the API server, and what to do about it."""
    if error == Throttled.__name__:
        who = "look at the API server's priority and fairness, and who else calls it so often"
        return "is throttled", f"{who}; it is tried again by itself"
    who = "look for an admission policy, a webhook or a controller that keeps nodes from changes"
    return "is refused", f"{who}; it is tried again by itself"


def _detail(past: PastAction) -> str:
    action, outcome = past.outcome.action, past.outcome
    text = describe(action)
    place = text.subject
    if text.region:
        place = f"{text.subject} in {text.region}"
    elif isinstance(action, TerminateInstance):
        place = f"{action.instance} of {action.fleet} in {action.region}"
    elif key := text.facts.get("key"):
        place = f"{key} on {text.subject}"
    lasted = duration(past.at - (past.since or past.at))
    return f"{place}: {outcome.detail or outcome.error}; each of {past.times} tries in {lasted}"
