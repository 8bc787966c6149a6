"""How long a node must have been empty: grace periods by local time and weekday."""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.planner.calendar import in_window
from reconciler.planner.disruption_settings import GracePeriod
from reconciler.planner.settings import FleetSettings

_DAYS_AHEAD: Final = 7
"""Weekdays come again: what a grace period is then, it is now."""


def grace_seconds(periods: Sequence[GracePeriod], at: datetime, timezone: str) -> float | None:
    """Return the length in seconds of the first grace period in force at `at`; None if none is."""
    if not periods:
        return None
    local = at.astimezone(ZoneInfo(timezone))
    holding = (p.seconds for p in periods if in_window(local, p.starts, p.ends, p.weekdays))
    return next(holding, None)


def idle_seconds_required(fleet: FleetSettings, at: datetime, timezone: str) -> float:
    """Return for how many seconds a node of the fleet must have been empty (docs/scale-in.md)."""
    return _idle_seconds(fleet, grace_seconds(fleet.grace_periods, at, timezone))


def idle_long_enough_at(
    fleet: FleetSettings, since: datetime, at: datetime, timezone: str
) -> datetime:
    """Return when a node that stays empty will have been so for long enough, `at` at the earliest.

    What is required changes with the hour: it may be enough as soon as a grace period ends, or not
    be, as one begins before.

    Args:
        fleet: Its fleet.
        since: Since when it is empty.
        at: The clock.
        timezone: That of the grace periods.
    """
    ahead = _grace_ahead(fleet.grace_periods, at, timezone)
    return _first_enough(since, [(moment, _idle_seconds(fleet, grace)) for moment, grace in ahead])


def grace_ends_at(
    periods: tuple[GracePeriod, ...], since: datetime, at: datetime, timezone: str
) -> datetime:
    """Return when a node of this age is older than the grace period of that time, if any.

    Args:
        periods: Its fleet's.
        since: When it was created.
        at: The clock, and the earliest answer.
        timezone: That of the periods.
    """
    ahead = _grace_ahead(periods, at, timezone)
    return _first_enough(since, [(moment, grace or 0.0) for moment, grace in ahead])


def _idle_seconds(fleet: FleetSettings, grace: float | None) -> float:
    idle = fleet.scale_in.idle_threshold_seconds
    if grace is None:
        return idle
    return max(grace, idle) if fleet.scale_in.idle_threshold_explicit else grace


@lru_cache(maxsize=64)
def _grace_ahead(
    periods: tuple[GracePeriod, ...], at: datetime, timezone: str
) -> tuple[tuple[datetime, float | None], ...]:
    """Return the grace period now, and what it changes to within a week, each with its moment.

    Fleets share few lists of periods, and each is asked for every empty node.
    """
    found = [(at, grace_seconds(periods, at, timezone))]
    if not periods:
        return tuple(found)
    zone = ZoneInfo(timezone)
    today = at.astimezone(zone).date()
    clocks = {time(0)}.union(*((period.starts, period.ends) for period in periods))
    moments = {
        datetime.combine(today + timedelta(days=days), clock, zone).astimezone(UTC)
        for days in range(_DAYS_AHEAD + 1)
        for clock in clocks
    }
    for moment in sorted(each for each in moments if each > at):
        grace = grace_seconds(periods, moment, timezone)
        if grace != found[-1][1]:
            found.append((moment, grace))
    return tuple(found)


def _first_enough(since: datetime, ahead: Sequence[tuple[datetime, float]]) -> datetime:
    """Return when the time since then is first as long as what is required from that moment on."""
    for (begins, seconds), (changes, _) in pairwise(ahead):
        enough = max(begins, since + timedelta(seconds=seconds))
        if enough < changes:
            return enough
    begins, seconds = ahead[-1]
    return max(begins, since + timedelta(seconds=seconds))
