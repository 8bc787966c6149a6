"""The last day in bounded memory: decisions, and figures over time.

It ends with the process, unlike recorded demand and Prometheus.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from reconciler.loops.describe import describe
from reconciler.model.ids import Region
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan

KEPT: Final = timedelta(hours=24)
DECISIONS_MAX: Final = 5_000
"""About 3 MB. A quieter cluster keeps its whole day, a busy one its last hours."""
SAMPLE_EVERY: Final = timedelta(seconds=60)
SAMPLES_MAX: Final = 1_441
RECENT_EVERY: Final = timedelta(seconds=2)
RECENT_MAX: Final = 451
RECENT: Final = timedelta(minutes=15)
"""For this long after the start there are samples every two seconds: with one a minute, a plot
would not show what a new user, or an upgrade, does first."""

DecisionKind = Literal["buy", "remove", "move", "mark", "config", "trouble", "leadership"]
KINDS: Final[tuple[DecisionKind, ...]] = (
    "buy",
    "remove",
    "move",
    "mark",
    "config",
    "trouble",
    "leadership",
)
"""`buy`: a target goes up. `remove`: a target goes down, an instance or node ends. `move`: a pod is
evicted. `mark`: a taint or an annotation."""
_KINDS: Final[dict[str, DecisionKind]] = {
    "terminate-instance": "remove",
    "delete-node": "remove",
    "evict-pod": "move",
    "delete-pod": "move",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision and its result; equal ones in a row are one."""

    at: datetime
    """When it last happened."""
    kind: DecisionKind
    what: str
    subject: str
    outcome: str
    """An outcome of an action, or empty."""
    because: str
    detail: str = ""
    policy: str = ""
    change: str = ""
    """The values before and after, in words."""
    times: int = 1
    since: datetime | None = None
    """When it first happened; None when it happened once."""

    @property
    def is_trouble(self) -> bool:
        """Return whether a filter for failures shows it."""
        return self.kind == "trouble" or self.outcome in {"failed", "unknown", "refused"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The figures at one moment."""

    at: datetime
    nodes_joined: int
    nodes_requested: int
    pods_pending: int
    pods_unplaceable: int
    usd_per_hour: float
    """The price of the targets that EC2 has accepted."""
    usd_per_hour_bound: float
    """The cost of what stays, and the least that the plan's new nodes could cost."""


class History:
    """Keeps decisions and samples of the last day; any thread may read.

    Args:
        now: The clock.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._decisions: deque[Decision] = deque(maxlen=DECISIONS_MAX)
        self._samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)
        self._first: deque[Sample] = deque(maxlen=RECENT_MAX)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Return those of the last day, newest first."""
        oldest = self._now() - KEPT
        with self._lock:
            return tuple(
                decision for decision in reversed(self._decisions) if decision.at >= oldest
            )

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Return those of the last day, oldest first; the first ones are closer together."""
        oldest = self._now() - KEPT
        with self._lock:
            return tuple(sample for sample in self._first or self._samples if sample.at >= oldest)

    def note(self, kind: DecisionKind, what: str, subject: str, because: str) -> None:
        """Keep what is not an action: a config, an error, a change of leader."""
        self._keep(
            Decision(
                at=self._now(), kind=kind, what=what, subject=subject, outcome="", because=because
            )
        )

    def ended(self, outcome: Outcome) -> None:
        """Keep an action that ended, unless it was done already."""
        if outcome.kind != "already-done":
            self._keep(_of_action(outcome, self._now()))

    def sampled(self, plan: Plan, requested: Mapping[tuple[str, Region], int]) -> None:
        """Keep the figures after a cycle, one sample a minute.

        Args:
            plan: The cycle's plan.
            requested: EC2's targets, by fleet and region.
        """
        now = self._now()
        with self._lock:
            coarse, fine = _is_due(self._samples, SAMPLE_EVERY, now), False
            if not self._samples or timedelta(0) <= now - self._samples[0].at < RECENT:
                fine = _is_due(self._first, RECENT_EVERY, now)
            else:
                self._first.clear()
            if coarse or fine:
                sample = _sample(plan, requested, now)
                self._samples.extend([sample] * coarse)
                self._first.extend([sample] * fine)

    def _keep(self, decision: Decision) -> None:
        with self._lock:
            last = self._decisions[-1] if self._decisions else None
            if last is not None and _is_repeated(last, decision):
                self._decisions[-1] = replace(
                    decision, times=last.times + 1, since=last.since or last.at
                )
            else:
                self._decisions.append(decision)


def _is_due(samples: deque[Sample], every: timedelta, now: datetime) -> bool:
    """Return whether the last sample is old enough, or of a clock that was ahead."""
    return not samples or not timedelta(0) <= now - samples[-1].at < every


def _is_repeated(last: Decision, new: Decision) -> bool:
    """Return whether the newest entry repeats the last one, such as an error of each cycle."""
    return new == replace(last, at=new.at, times=1, since=None)


def _of_action(outcome: Outcome, at: datetime) -> Decision:
    text = describe(outcome.action)
    before, after = text.before, text.after
    kind = _KINDS.get(text.name, "mark")
    if isinstance(before, int) and isinstance(after, int):
        kind = "buy" if after > before else "remove"
    shown = [str(each) for each in (before, after) if each is not None]
    return Decision(
        at=at,
        kind=kind,
        what=text.name,
        subject=text.named,
        outcome=outcome.kind,
        because=outcome.action.because,
        detail=outcome.detail,
        policy=outcome.action.policy,
        change=" → ".join(shown),
    )


def _sample(plan: Plan, requested: Mapping[tuple[str, Region], int], at: datetime) -> Sample:
    pending = sum(1 for placement in plan.placements if placement.moved_from is None)
    targets = [(requested.get((f.fleet, f.region), f.current), f) for f in plan.fleets]
    return Sample(
        at=at,
        nodes_joined=sum(fleet.joined for fleet in plan.fleets),
        nodes_requested=sum(target for target, _ in targets),
        pods_pending=pending + len(plan.unplaceable),
        pods_unplaceable=len(plan.unplaceable),
        usd_per_hour=sum(target * fleet.node_usd_per_hour for target, fleet in targets),
        usd_per_hour_bound=plan.cost.hourly_usd_lower_bound,
    )
