"""Shows a person on stderr that a command is still working, and on what."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from reconciler.telemetry.logging import is_dumb_terminal

QUIET_SECONDS = 2.0
"""Shorter work shows nothing."""
EVERY_SECONDS = 1.0
_CLEAR = "\r\x1b[K"


@contextmanager
def working(what: str, stream: TextIO | None = None) -> Iterator[None]:
    """Show `what` and for how long, once it takes over two seconds; on a terminal only.

    The line is overwritten and removed at the end, so that it is not part of any output.

    Args:
        what: The work, as in `planning with Terraform`.
        stream: Where it is shown; default: stderr.
    """
    out = stream or sys.stderr
    if not out.isatty() or is_dumb_terminal():
        yield
        return
    ended = threading.Event()
    began = time.monotonic()

    def tell() -> None:
        if ended.wait(QUIET_SECONDS):
            return
        while True:
            out.write(f"{_CLEAR}{what} ({time.monotonic() - began:.0f} s)")
            out.flush()
            if ended.wait(EVERY_SECONDS):
                break
        out.write(_CLEAR)
        out.flush()

    thread = threading.Thread(target=tell, name="working", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
