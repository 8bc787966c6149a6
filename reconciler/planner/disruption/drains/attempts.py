"""How often something was tried in a row, and when last: an annotation that survives a restart."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.planner.text import parse_rfc3339, rfc3339

_DIGITS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Written as `<RFC 3339>/<count>`."""

    latest: datetime
    count: int

    def __str__(self) -> str:
        return f"{rfc3339(self.latest)}/{self.count}"


def read_attempts(text: str, at: datetime, forgotten_after: timedelta) -> Attempts | None:
    """What was noted; None where nothing was, or so long ago that it counts no more.

    A time in the future counts as now, a count that cannot be read as 1.
    """
    noted, _, number = text.partition("/")
    latest = parse_rfc3339(noted)
    if latest is None:
        return None
    readable = number.isascii() and number.isdigit() and len(number) <= _DIGITS_MAX
    latest = min(latest, at)
    if at - latest > forgotten_after:
        return None
    return Attempts(latest=latest, count=max(1, int(number)) if readable else 1)
