"""What a run has found so far: it grows, so that a part that fails takes no other one with it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from tests.benchmarks.e2e.bursts import Reacted
from tests.benchmarks.e2e.process import Usage

Part = Literal["latency", "churn"]
PARTS: tuple[Part, ...] = ("latency", "churn")
_ENDS = 10
"""A stretch's begin and end are a tenth of it each: single samples jump by a megabyte or two."""
_STOPS = 6
"""Moments between which memory is reported, over a stretch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The reconciler's CPU and memory over some time."""

    seconds: float
    cores: float
    rss_first_mib: float
    """Median of the first tenth."""
    rss_last_mib: float
    """Median of the last tenth."""
    rss_most_mib: float
    rss_course_mib: tuple[float, ...]
    """At evenly spaced moments, first and last included."""


def stretch(before: Usage, after: Usage, samples: Sequence[Usage]) -> Stretch:
    """CPU and memory between two moments, from the samples taken meanwhile."""
    rss = [sample.rss_mib for sample in samples if before.at <= sample.at <= after.at]
    rss = rss or [before.rss_mib, after.rss_mib]
    tenth = max(1, len(rss) // _ENDS)
    seconds = after.at - before.at
    return Stretch(
        seconds=seconds,
        cores=(after.cpu_seconds - before.cpu_seconds) / seconds,
        rss_first_mib=median(rss[:tenth]),
        rss_last_mib=median(rss[-tenth:]),
        rss_most_mib=max(rss),
        rss_course_mib=tuple(rss[n * (len(rss) - 1) // _STOPS] for n in range(_STOPS + 1)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Churned:
    """The churn so far."""

    wanted: int
    """Pods that were to begin, and end, in a second."""
    rate: float
    """Pods that did."""
    usage: Stretch


@dataclass(slots=True, kw_only=True)
class Findings:
    """Everything of one run; None and empty: not measured, or not yet."""

    nodes: int
    pods: int
    first_plan_seconds: float | None = None
    idle: Stretch | None = None
    churned: Churned | None = None
    behind_seconds: float | None = None
    """How far the API server's watches were behind etcd when the churn ended."""
    bursts: list[Reacted] = field(default_factory=list)
    after_bursts: Stretch | None = None
    peak_mib: float = 0.0
    missing: dict[Part, str] = field(default_factory=dict)
    """Why a part did not come to its end."""
