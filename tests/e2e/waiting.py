"""Waiting for what another process does, which sends this one no event."""

import threading
import time
from collections.abc import Callable


def until(
    what: str, holds: Callable[[], bool], seconds: float = 180, look_seconds: float = 0.1
) -> None:
    """Look again and again, with `look_seconds` between.

    Raises:
        AssertionError: It did not come to hold in time.
    """
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        threading.Event().wait(look_seconds)
