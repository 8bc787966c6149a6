"""Times as text: RFC 3339 in UTC."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """An aware time as `2026-01-31T12:00:00Z`; parts of seconds only when there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
