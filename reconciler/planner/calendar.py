"""Windows of local time: when a grace period or a disruption budget is in force."""

from collections.abc import Collection
from datetime import UTC, datetime, time, timedelta
from typing import Final

from cronsim import CronSim

_CLOCK_CHANGE_MAX: Final = timedelta(hours=3)
"""No time zone sets its clocks back by more."""


def in_window_opened_on(
    local: datetime, starts: time, ends: time, weekdays: Collection[int]
) -> bool:
    """Return whether a local time lies in a window that opened on one of its days.

    An overnight window opens on its day at `starts` and closes on the next one at `ends`.
    `starts` equal to `ends` is the whole day.

    Args:
        local: The moment, in the time zone of the window.
        starts: From when it holds.
        ends: Until when it holds.
        weekdays: The days on which it opens, 1 to 7 from Monday.
    """
    clock = local.time().replace(tzinfo=None)
    if starts > ends and clock < ends:
        return (local - timedelta(days=1)).isoweekday() in weekdays
    return in_window(local, starts, ends, weekdays)


def in_window(local: datetime, starts: time, ends: time, weekdays: Collection[int]) -> bool:
    """Return whether a local time lies in a window on one of its days.

    An overnight window holds on each of its days from 00:00 to `ends` and from `starts` on, which
    is how Kluster Fleet Manager reads grace periods. Other windows: `in_window_opened_on`.
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
    """Return whether a local time lies within a duration after a time of a cron expression.

    Args:
        local: The moment, in the time zone of the expression.
        schedule: Five fields, as in crontab(5).
        duration_seconds: The time after each of its times, also when the clocks change.

    Raises:
        cronsim.CronSimError: The expression cannot be parsed.
    """
    now, zone = local.astimezone(UTC), local.tzinfo
    clock = local.replace(tzinfo=None, fold=0, second=0, microsecond=0)
    latest: datetime | None = None
    # A cron iterator knows only local clocks: it starts where they could have been set back from,
    # and each of its times is one moment, or two in the hour that occurs twice. In the hour that is
    # left out it is the moment by the clocks before: the second one is an hour earlier.
    for each in CronSim(schedule, clock + _CLOCK_CHANGE_MAX, reverse=True):
        if latest is not None and each < clock - _CLOCK_CHANGE_MAX:
            break
        first, second = (each.replace(tzinfo=zone, fold=n).astimezone(UTC) for n in (0, 1))
        found = [moment for moment in (first, max(first, second)) if moment <= now]
        latest = max([*found, latest] if latest is not None else found, default=None)
    return latest is not None and now - latest < timedelta(seconds=duration_seconds)
