"""Lines for whoever waits: a run takes minutes, and must not look as if it hung."""

import sys
import time

_BEGAN = time.monotonic()


def say(text: str) -> None:
    """One line, with the time since the start."""
    sys.stdout.write(f"  [{time.monotonic() - _BEGAN:5.0f} s] {text}\n")
    sys.stdout.flush()
