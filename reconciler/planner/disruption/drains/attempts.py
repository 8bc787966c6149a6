"""How often and when something was tried, kept in an annotation that survives a restart."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.text import parse_rfc3339, rfc3339

REPLACEMENT_COUNTS_FOR = timedelta(minutes=30)
"""For this long a node that was asked for counts as another node's replacement."""
_DIGITS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """A count of attempts on a node, written as `<RFC 3339>/<count>[/<version>]`."""

    latest: datetime
    count: int
    version: str = ""
    """The launch template version of the rolling update that tried it last; empty if none did."""

    def __str__(self) -> str:
        return "/".join(filter(None, (rfc3339(self.latest), str(self.count), self.version)))


def read_attempts(text: str, at: datetime, forgotten_after: timedelta) -> Attempts | None:
    """Return what was noted; None if nothing was, or so long ago that it no longer counts.

    A time in the future counts as now, a count that is unreadable as 1.
    """
    noted, _, rest = text.partition("/")
    number, _, version = rest.partition("/")
    latest = parse_rfc3339(noted)
    if latest is None:
        return None
    readable = number.isascii() and number.isdigit() and len(number) <= _DIGITS_MAX
    latest = min(latest, at)
    if at - latest > forgotten_after:
        return None
    count = max(1, int(number)) if readable else 1
    return Attempts(latest=latest, count=count, version=version)
