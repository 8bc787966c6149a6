"""Waiting for what another process does, which sends this one no event."""

import threading
import time
from collections.abc import Callable

_LOOK_SECONDS = 0.1


def until(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    """Look again and again.

    Raises:
        AssertionError: It did not come to hold in time.
    """
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        threading.Event().wait(_LOOK_SECONDS)
