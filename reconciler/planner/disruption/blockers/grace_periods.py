"""How long a node must have been empty: grace periods by local time and weekday."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from reconciler.planner.calendar import in_window
from reconciler.planner.settings import FleetSettings, GracePeriod


def grace_seconds(periods: Sequence[GracePeriod], at: datetime, timezone: str) -> float | None:
    """Return the length in seconds of the first grace period in force at `at`; None if none is."""
    if not periods:
        return None
    local = at.astimezone(ZoneInfo(timezone))
    holding = (p.seconds for p in periods if in_window(local, p.starts, p.ends, p.weekdays))
    return next(holding, None)


def idle_seconds_required(fleet: FleetSettings, at: datetime, timezone: str) -> float:
    """Return for how many seconds a node of the fleet must have been empty (docs/scale-in.md)."""
    grace = grace_seconds(fleet.grace_periods, at, timezone)
    idle = fleet.scale_in.idle_threshold_seconds
    if grace is None:
        return idle
    return max(grace, idle) if fleet.scale_in.idle_threshold_explicit else grace
