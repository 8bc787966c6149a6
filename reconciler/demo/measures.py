"""The demo's measurements, from observed pods, calls and the capacity loop's log."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from reconciler.demo.account import Raise
from reconciler.demo.follower import PodLife
from reconciler.demo.plots import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """How fast pods got capacity, in seconds."""

    raised: tuple[float, ...]
    """From the first sight of a pod to the accepted raise of a target for its sector, sorted."""
    bound: tuple[float, ...]
    """From first sight to a node, sorted; launch and join times of the sandbox included."""
    found_room: int
    """Pods that were bound without a raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The most expensive moment, against its proven lower bound."""

    hourly_usd: float
    lower_bound_usd: float
    raised_usd: float
    """The cost of all raises of targets, and its lower bound."""
    raised_bound_usd: float

    @property
    def gap(self) -> float:
        """Return the share of the raises' cost that an optimal purchase might have saved."""
        if not self.raised_usd:
            return 0.0
        return (self.raised_usd - self.raised_bound_usd) / self.raised_usd


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all do not exceed (nearest rank)."""
    if not values:
        return 0.0
    ordered = sorted(values)
    rank = -(-int(share * 1_000_000) * len(ordered) // 1_000_000)
    return ordered[max(0, min(len(ordered), rank) - 1)]


def reaction(lives: Iterable[PodLife], raises: Sequence[Raise]) -> Reaction:
    """Match every pod with the first raise for its sector after it was first seen."""
    raised: list[float] = []
    bound: list[float] = []
    found_room = 0
    for life in lives:
        if life.bound_at is None:
            continue
        bound.append((life.bound_at - life.seen_at).total_seconds())
        served = [
            r.at for r in raises if r.sector == life.sector and life.seen_at <= r.at < life.bound_at
        ]
        if served:
            raised.append((min(served) - life.seen_at).total_seconds())
        else:
            found_room += 1
    return Reaction(raised=tuple(sorted(raised)), bound=tuple(sorted(bound)), found_room=found_room)


def spending(log: Path) -> Spending:
    """Return costs of the cycles in the capacity loop's log (one JSON object per line)."""
    cycles = [entry for entry in _entries(log) if "hourly_usd_after" in entry]
    peak = max(cycles, key=lambda e: float(e["hourly_usd_after"]), default={})
    raised = bound = 0.0
    for entry in cycles:
        step = float(entry["hourly_usd_after"]) - float(entry["hourly_usd_before"])
        if step > 0:
            missed = float(entry["hourly_usd_after"]) - float(entry["hourly_usd_lower_bound"])
            raised += step
            bound += step - missed
    return Spending(
        hourly_usd=float(peak.get("hourly_usd_after", 0)),
        lower_bound_usd=float(peak.get("hourly_usd_lower_bound", 0)),
        raised_usd=raised,
        raised_bound_usd=bound,
    )


def costs(log: Path) -> list[Cost]:
    """Return the cost after each cycle of the capacity loop's log, and its bound."""
    return [
        Cost(
            at=datetime.fromisoformat(entry["at"]),
            hourly_usd=float(entry["hourly_usd_after"]),
            lower_bound_usd=float(entry["hourly_usd_lower_bound"]),
        )
        for entry in _entries(log)
        if "hourly_usd_after" in entry
    ]


def _entries(log: Path) -> Iterable[Mapping[str, Any]]:
    for line in log.read_text(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry
