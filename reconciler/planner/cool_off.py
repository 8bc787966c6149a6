"""Length of a cool-off after failures: 5 minutes, doubling to 30 (docs/failures.md)."""

from collections.abc import Iterable
from datetime import datetime, timedelta

COOL_OFF = timedelta(minutes=5)
COOL_OFF_MAX = timedelta(minutes=30)
ATTEMPT = timedelta(minutes=1)
"""Errors that are no further apart are of one attempt."""


def cool_off(failures: int) -> timedelta:
    """Return 5 minutes after the first failure, doubling up to 30."""
    return min(COOL_OFF * (1 << min(max(0, failures - 1), 8)), COOL_OFF_MAX)


def failures_in(errors: Iterable[datetime]) -> int:
    """Return how many attempts failed: those within `ATTEMPT` are of one."""
    times = sorted(errors)
    return sum(
        1
        for before, after in zip([None, *times], times, strict=False)
        if before is None or after - before > ATTEMPT
    )
