"""Times as text: RFC 3339 in UTC, and dates of HTTP."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

YEARS = range(1970, 2200)
"""The years of accepted times: others are mistakes, and times near the ends of the calendar cannot
be calculated with."""


def rfc3339_exact(moment: datetime) -> str:
    """Return an aware time as `2026-01-31T12:00:00Z`; fractions of seconds only if not 0."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def http_date(text: str | None) -> datetime | None:
    """Return the time of a Date header in UTC.

    None when there is none, it cannot be read, or its year is not in `YEARS`.
    """
    try:
        moment = parsedate_to_datetime(text or "")
        if moment.tzinfo is None:
            return None
        in_utc = moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):  # not a date, or one outside of the calendar
        return None
    return in_utc if in_utc.year in YEARS else None
