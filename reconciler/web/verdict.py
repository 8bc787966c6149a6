"""Whether the program does its work, in one word and the reasons for it."""

from dataclasses import dataclass
from typing import Final, Literal

from reconciler.loops.describe import describe
from reconciler.web.board import PastAction, StatusBoard, View

Level = Literal["ok", "starting", "degraded", "failing"]
_TEXTS: Final[dict[Level, str]] = {
    "ok": "working",
    "starting": "starting: no cycle has succeeded yet",
    "degraded": "working, with failures",
    "failing": "not working",
}
STARTING_SECONDS: Final = 120.0
"""So long may the first cycle take; afterwards its absence is a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the first lines of the status say."""

    level: Level
    text: str
    problems: tuple[str, ...] = ()
    """What is wrong, each with its cause, the worst first."""


def verdict_of(board: StatusBoard) -> Verdict:
    """The verdict on the program as the board shows it now."""
    view = board.view
    failing = tuple(_failing(board, view))
    degraded = tuple(_degraded(view))
    level: Level = "ok"
    if failing:
        level = "failing"
    elif view.succeeded_at is None:
        level = "starting"
    elif degraded:
        level = "degraded"
    return Verdict(level=level, text=_TEXTS[level], problems=(*failing, *degraded))


def _failing(board: StatusBoard, view: View) -> list[str]:
    """What keeps the program from doing anything."""
    problems = []
    if not board.is_alive():
        problems.append("the loop is stuck: no cycle began or ended lately")
    error = view.last_cycle.error if view.last_cycle is not None else None
    if error is not None and view.errors_in_a_row:
        problems.append(f"the last {view.errors_in_a_row} cycles failed: {error}")
    elif view.succeeded_at is None and board.success_age_seconds() > STARTING_SECONDS:
        problems.append("no cycle has succeeded since the start")
    return problems


def _degraded(view: View) -> list[str]:
    """What is done in part only."""
    problems = [failed_action_text(each) for each in view.failing]
    if view.config.faults:
        problems.append(f"the config file is refused: {view.config.faults[0]}")
    return problems


def failed_action_text(past: PastAction) -> str:
    """An action that came to nothing, with its cause."""
    text = describe(past.outcome.action)
    cause = past.outcome.detail or past.outcome.error or "no cause was given"
    return f"{text.name} {text.subject} {past.outcome.kind}: {cause}"
