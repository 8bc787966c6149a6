"""What a drain rule returns about a pod, and what it may read."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from reconciler.model.cluster import Pod


class Verdict(Enum):
    """The result of one rule for one pod."""

    OK = "ok"
    """The pod's owner says that it may be moved: lifts the rules that only assume."""
    BLOCK = "block"
    """The pod may not be moved voluntarily, so its node stays."""
    SKIP = "skip"
    """The pod need not be moved: it does not count, or ends with its node."""
    WAIT = "wait"
    """The pod is ending already: wait for it."""
    NO_OPINION = "no-opinion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """A verdict and its reason, for people."""

    verdict: Verdict
    code: str = ""
    """The rule's stable code, shown as `kept[].code`."""
    reason: str = ""
    until: datetime | None = None
    """When it ends at the latest; None if time alone does not end it."""


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
    """Set for expired nodes whose `terminate_after` has passed: their pods are moved in any
    case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A pod, and how many budgets cover it."""

    pod: Pod
    budgets: int = 0
    budgets_readable: bool = True
    """Whether every budget of its namespace could be read."""
    protected_until: datetime | None = None
    """Until when its owner keeps it; None if there is no such time."""


Rule = Callable[[Subject, Terms], Ruling]

NO_OPINION = Ruling(verdict=Verdict.NO_OPINION)


def block(code: str, reason: str, until: datetime | None = None) -> Ruling:
    """Return the ruling that the pod may not be moved."""
    return Ruling(verdict=Verdict.BLOCK, code=code, reason=reason, until=until)
