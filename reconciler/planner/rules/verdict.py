"""What a drain rule says of a pod, and what it may look at."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from reconciler.model.cluster import Pod


class Verdict(Enum):
    """What one rule makes of one pod."""

    OK = "ok"
    """The pod's owner says that it may be moved: lifts the rules that only guess."""
    BLOCK = "block"
    """The pod may not be moved voluntarily, so its node stays."""
    SKIP = "skip"
    """The pod needs no moving: it does not count, or ends with its node."""
    WAIT = "wait"
    """The pod is on its way out already: nothing to do but wait."""
    NO_OPINION = "no-opinion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """A verdict and, for people, its reason."""

    verdict: Verdict
    code: str = ""
    """The rule's stable word, shown as `kept[].code`."""
    reason: str = ""
    until: datetime | None = None
    """When it no longer holds, whatever else happens; None when time alone does not end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the config allows, and which policy asks."""

    move_bare_pods: bool = False
    move_local_storage: bool = False
    move_system_pods: bool = False
    graceful_termination_max_seconds: float = 120
    critical_pods_stay: bool = False
    """Set by the rescheduler and the descheduler; scale-in moves critical pods."""
    overdue: bool = False
    """Set for expired nodes whose `terminate_after` has passed: whatever speaks for a pod, it
    goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A pod, and how many budgets cover it."""

    pod: Pod
    budgets: int = 0
    budgets_readable: bool = True
    """Whether every budget of its namespace could be read."""
    protected_until: datetime | None = None
    """When the time ends for which its owner keeps it; None when there is none."""


Rule = Callable[[Subject, Terms], Ruling]

NO_OPINION = Ruling(verdict=Verdict.NO_OPINION)


def block(code: str, reason: str, until: datetime | None = None) -> Ruling:
    """Return the ruling that the pod may not be moved."""
    return Ruling(verdict=Verdict.BLOCK, code=code, reason=reason, until=until)
