"""How often something was tried in a row, and when last: an annotation that survives a restart."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.text import parse_rfc3339, rfc3339

REPLACEMENT_COUNTS_FOR = timedelta(minutes=30)
"""How long a node that was asked for in another one's place counts as its replacement."""
_DIGITS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Counts attempts on a node.

    They are written as `<RFC 3339>/<count>`, and `/<version>` behind it where there is one.
    """

    latest: datetime
    count: int
    version: str = ""
    """The launch template version of the rolling update that tried it last; empty: none did."""

    def __str__(self) -> str:
        return "/".join(filter(None, (rfc3339(self.latest), str(self.count), self.version)))


def read_attempts(text: str, at: datetime, forgotten_after: timedelta) -> Attempts | None:
    """Return what was noted; None where nothing was, or so long ago that it counts no more.

    A time in the future counts as now, a count that cannot be read as 1.
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
