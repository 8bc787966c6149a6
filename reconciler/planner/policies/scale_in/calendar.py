"""How long a node must have been empty: grace periods by local time and weekday."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from reconciler.planner.settings import FleetSettings, GracePeriod


def holds(period: GracePeriod, local: datetime) -> bool:
    """Whether the period is in force at a local time.

    An overnight range holds on each of its days from 00:00 to `ends` and from `starts` on.
    """
    if local.isoweekday() not in period.weekdays:
        return False
    clock = local.time().replace(tzinfo=None)
    if period.starts == period.ends:
        return True
    if period.starts < period.ends:
        return period.starts <= clock < period.ends
    return clock >= period.starts or clock < period.ends


def grace_seconds(periods: Sequence[GracePeriod], at: datetime, timezone: str) -> float | None:
    """The first period that holds, in seconds; None when none does."""
    if not periods:
        return None
    local = at.astimezone(ZoneInfo(timezone))
    return next((p.seconds for p in periods if holds(p, local)), None)


def idle_seconds_required(fleet: FleetSettings, at: datetime, timezone: str) -> float:
    """How long a node of the fleet must have been empty now (docs/scale-in.md)."""
    grace = grace_seconds(fleet.grace_periods, at, timezone)
    idle = fleet.scale_in.idle_threshold_seconds
    if grace is None:
        return idle
    return max(grace, idle) if fleet.scale_in.idle_threshold_explicit else grace
