"""Times as text: RFC 3339 in UTC, and the dates of HTTP."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

YEARS = range(1970, 2200)
"""Of times that are given: others are mistakes, and times near the ends of the calendar cannot be
counted on from."""


def rfc3339(moment: datetime) -> str:
    """An aware time as `2026-01-31T12:00:00Z`; parts of seconds only when there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def http_date(text: str | None) -> datetime | None:
    """Return the time of a Date header in UTC.

    None when there is none, it cannot be read, or its year is none of `YEARS`.
    """
    try:
        moment = parsedate_to_datetime(text or "")
        if moment.tzinfo is None:
            return None
        in_utc = moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):  # no date, or one outside of the calendar
        return None
    return in_utc if in_utc.year in YEARS else None
