"""What a cause of trouble is, and what the rules that find causes read."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from reconciler.web.view import LeadershipView, View

Level = Literal["ok", "starting", "standby", "limited", "degraded", "failing"]
"""`limited`: the program works, and pods or a minimum wait for what EC2 or the config does not
provide, or a safety measure keeps nodes."""
CauseKind = Literal[
    "loop-stuck",
    "api-server-unreachable",
    "ec2-denied",
    "ec2-silent",
    "ec2-call-fails",
    "cycle-failed",
    "no-success",
    "wrong-cluster",
    "clock-wrong",
    "lease-lost",
    "not-leader",
    "action-failed",
    "queue-unreadable",
    "config-refused",
    "second-loop-fails",
    "no-capacity",
    "quota-reached",
    "launch-fails",
    "fleet-missing",
    "fleet-unavailable",
    "budget-too-tight",
    "planning-failed",
    "update-halted",
    "update-rests",
    "nodes-held",
    "no-progress",
    "not-bound",
    "below-minimum",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that is wrong."""

    kind: CauseKind
    level: Level
    headline: str
    """A few words for the first line."""
    detail: str
    """The cause in the words of the other system."""
    remedy: str = ""
    """What to do; empty when there is nothing sensible to say."""

    @property
    def text(self) -> str:
        """Return headline and detail in one line."""
        return f"{self.headline}: {self.detail}" if self.detail else self.headline


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardMoment:
    """What the rules read: the state of one moment."""

    view: View
    leadership: LeadershipView
    alive: bool
    success_age_seconds: float
    second_loop_failing_seconds: float
    """For how long every turn of the second loop has failed; 0: the last one did not, or none
    runs."""


Rule = Callable[[BoardMoment], Iterator[Cause]]
_NAMED_MAX: Final = 3


def first_of(names: Iterable[str], between: str = ", ") -> str:
    """Return the first names, and how many more there are."""
    found = list(names)
    more = len(found) - _NAMED_MAX
    return between.join(found[:_NAMED_MAX]) + (f" (and {more} more)" if more > 0 else "")
