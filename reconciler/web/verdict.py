"""Whether the program works: the first line of the page, the terminal and JSON."""

from dataclasses import dataclass

from reconciler.model.text import counted_noun, left_alone
from reconciler.web.board import StatusBoard
from reconciler.web.causes.cause import BoardMoment, Cause, Level
from reconciler.web.causes.rules import RULES
from reconciler.web.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The first lines of the status."""

    level: Level
    text: str
    """The first line."""
    causes: tuple[Cause, ...] = ()
    """What is wrong, the worst first."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the causes, one line each."""
        return tuple(cause.text for cause in self.causes)


def verdict_of(board: StatusBoard) -> Verdict:
    """Return the verdict on the program as the board shows it now."""
    seen = BoardMoment(
        view=board.view,
        leadership=board.leadership,
        alive=board.is_alive(),
        success_age_seconds=board.success_age_seconds(),
        second_loop_failing_seconds=board.second_loop_failing_seconds(),
    )
    causes = tuple(cause for rule in RULES for cause in rule(seen))
    if causes:
        # Sorting is stable: within one rank the order of the rules stays.
        ordered = tuple(sorted(causes, key=_rank))
        return Verdict(level=ordered[0].level, text=ordered[0].text, causes=ordered)
    if seen.view.succeeded_at is None:
        return Verdict(level="starting", text="Starting: no cycle has succeeded yet")
    return Verdict(level="ok", text=_activity(seen.view))


def _rank(cause: Cause) -> int:
    """Return the rank: what stops everything, then the role of this replica, then the rest."""
    if cause.level == "failing":
        return 0
    if cause.kind in {"lease-lost", "not-leader"}:
        return 1
    return 3 if cause.level == "limited" else 2


def _activity(view: View) -> str:
    """Return what a program without problems does, in one line."""
    plan = view.plan
    if plan is None:
        return "Working"
    waiting = sum(1 for placement in plan.placements if placement.moved_from is None)
    launching = sum(fleet.launching for fleet in plan.fleets if not fleet.unavailable)
    parts = []
    if plan.unplaceable:
        parts.append(f"no fleet can run {counted_noun(len(plan.unplaceable), 'pod')}")
    if waiting:
        parts.append(f"{counted_noun(waiting, 'pod')} will run on what is there or on its way")
    if launching:
        parts.append(f"{counted_noun(launching, 'node')} launching")
    if plan.pods_without_sector:
        parts.append(left_alone(plan.pods_without_sector))
    text = ", ".join(parts) or "no pod waits"
    return text[0].upper() + text[1:]
