"""Windows of local time: when a grace period or a disruption budget holds."""

from collections.abc import Collection
from datetime import datetime, time, timedelta

from cronsim import CronSim


def in_window(local: datetime, starts: time, ends: time, weekdays: Collection[int]) -> bool:
    """Whether a local time lies in a window.

    An overnight window holds on each of its days from 00:00 to `ends` and from `starts` on.
    `starts` equal to `ends` is the whole day.

    Args:
        local: The moment, in the time zone of the window.
        starts: From when it holds.
        ends: Until when it holds.
        weekdays: On which days, 1 to 7 from Monday.
    """
    if local.isoweekday() not in weekdays:
        return False
    clock = local.time().replace(tzinfo=None)
    if starts == ends:
        return True
    if starts < ends:
        return starts <= clock < ends
    return clock >= starts or clock < ends


def after_schedule(local: datetime, schedule: str, duration_seconds: float) -> bool:
    """Whether a local time lies within a duration after a moment of a cron expression.

    Args:
        local: The moment, in the time zone of the expression.
        schedule: Five fields, as crontab(5) has them.
        duration_seconds: How long it holds from each of its moments.

    Raises:
        cronsim.CronSimError: The expression cannot be read.
    """
    # The moment itself counts, and a cron iterator starts beside the moment that it is given.
    just_after = local.replace(second=0, microsecond=0) + timedelta(minutes=1)
    latest = next(CronSim(schedule, just_after, reverse=True), None)
    return latest is not None and local - latest < timedelta(seconds=duration_seconds)
