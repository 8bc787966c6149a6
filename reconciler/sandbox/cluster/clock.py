"""The one clock of the sandbox cluster's process, and how Kubernetes writes times."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Now = Callable[[], datetime]
"""The present, aware, UTC."""


def system_now() -> datetime:
    """Return the machine's clock; everything else in this package takes a `Now`."""
    return datetime.fromtimestamp(time.clock_gettime(time.CLOCK_REALTIME), UTC)


def format_time(moment: datetime) -> str:
    """Return a metav1.Time: whole seconds, UTC."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime) -> str:
    """Return a metav1.MicroTime: always six decimals, UTC."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Read a metav1.Time or MicroTime.

    Raises:
        ValueError: Not RFC 3339.
    """
    return datetime.fromisoformat(text)
