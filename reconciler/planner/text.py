"""Times and durations as people and annotations write them."""

from datetime import UTC, datetime, timedelta


def rfc3339(at: datetime) -> str:
    """Seconds precision, `Z`: `2026-01-31T12:00:00Z`."""
    return at.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def parse_rfc3339(text: str) -> datetime | None:
    """An RFC 3339 time of an annotation; None when it is not one."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None


def duration(span: timedelta) -> str:
    """`1h30m`, `10m`, `45s`: the two largest units that are not zero."""
    left = max(0, int(span.total_seconds()))
    parts = []
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        amount, left = divmod(left, seconds)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts[:2]) or "0s"


def counted_noun(count: int, noun: str) -> str:
    """`1 node`, `3 nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
