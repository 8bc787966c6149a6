"""Which cron schedules are supported, and what Kubernetes' short names for them mean."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

FIELDS: Final = 5
SHORT_NAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Short names that CronJobs accept instead of five fields."""
_CLOCK_CHANGE_MAX: Final = timedelta(hours=3)
"""Longer than any time by which clocks are set back."""
_DAY_OF_MONTH, _DAY_OF_WEEK = 2, 4
_EVERY = re.compile(r"^\?")
"""CronJobs read `?` as `*`."""
_OF_MONTH = re.compile(r"[LW]", re.IGNORECASE)
_OF_WEEK = re.compile(r"#|(^|[0-9,-])L", re.IGNORECASE | re.ASCII)
"""Special values (last day, nearest weekday, second Friday); names of days do not match."""
_STEP = re.compile(r"(\*|[0-9]{1,2})/([1-9][0-9]{0,3})", re.ASCII)


def cron_schedule(text: str) -> str:
    """Return a schedule as CronJobs or crontab(5) know them, as a cron expression of five fields.

    CronJobs have short names such as `@daily`, and `?`; crontab(5) has 7 for Sunday, and cron
    programs have `L` and `#`. What both know means what it means to CronJobs.

    Raises:
        ValueError: It is not a valid schedule; the message says why.
    """
    fields = [_EVERY.sub("*", field) for field in SHORT_NAMES.get(text, text).split()]
    if len(fields) == FIELDS:
        # If both kinds of days are stated one is enough, and `*/2` counts as stated.
        fields[_DAY_OF_MONTH] = _expanded(fields[_DAY_OF_MONTH], range(1, 32))
        fields[_DAY_OF_WEEK] = _expanded(fields[_DAY_OF_WEEK], range(7))
    return _checked(" ".join(fields))


def cron_job_schedule(text: str) -> str:
    """Return what a CronJob may have as its schedule, as a cron expression of five fields.

    Source of the rules: the parser of the CronJob controller, github.com/robfig/cron v3.

    Raises:
        ValueError: It is not a valid schedule; the message says why.
    """
    fields = SHORT_NAMES.get(text, text).split()
    if len(fields) == FIELDS:
        _check_days(fields[_DAY_OF_MONTH], fields[_DAY_OF_WEEK])
    return cron_schedule(text)


def _checked(expression: str) -> str:
    """Return a cron expression of five fields unchanged; ValueError says why it is not one."""
    try:
        CronSim(expression, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(str(error)) from error
    if len(expression.split()) != FIELDS:
        raise ValueError(f"it has {len(expression.split())} fields, not {FIELDS}")
    return expression


def cron_job_times(schedule: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Yield the moments after one at which a CronJob starts its Jobs, in order.

    Each minute whose time of day fits counts, as in the CronJob controller (robfig/cron v3): none
    where clocks are put forward over it, and two where they are put back.
    """
    clock = after.astimezone(zone).replace(tzinfo=None, fold=0) - _CLOCK_CHANGE_MAX
    again: list[datetime] = []
    for time in CronSim(schedule, clock):
        first, second = (time.replace(tzinfo=zone, fold=n).astimezone(UTC) for n in (0, 1))
        if second < first:  # no clock shows this time
            continue
        while again and again[0] <= first:
            yield again.pop(0)
        if first > after:
            yield first
        if second > max(first, after):
            again.append(second)
    yield from again


def _check_days(of_month: str, of_week: str) -> None:
    """Raise ValueError for days that other programs understand and CronJobs do not."""
    if _OF_MONTH.search(of_month) or _OF_WEEK.search(of_week):
        raise ValueError("L, W and # are not known to CronJobs")
    parts = (part for item in of_week.split(",") for part in item.partition("/")[0].split("-"))
    if "7" in parts:
        raise ValueError("a day of the week is from 0 (Sunday) to 6")


def _expanded(field: str, days: range) -> str:
    """Return `*/n` and `m/n` as the days that they mean, everything else as it is."""
    return ",".join(_listed_part(part, days) for part in field.split(","))


def _listed_part(part: str, days: range) -> str:
    found = _STEP.fullmatch(part)
    if found is None or (found[1] == "*" and int(found[2]) < 2):
        return part
    first = days[0] if found[1] == "*" else int(found[1])
    return ",".join(map(str, range(first, days[-1] + 1, int(found[2])))) or part
