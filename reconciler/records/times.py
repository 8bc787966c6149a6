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
    """Return the time of a Date header; None when there is none or it cannot be read."""
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, TypeError, OverflowError):
        return None
    return moment.astimezone(UTC) if moment.tzinfo is not None else None
