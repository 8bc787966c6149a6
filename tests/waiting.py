"""Waiting for what another process or thread does, which sends the test no event."""

import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

Found = TypeVar("Found")

LOOK_SECONDS = 0.1
"""Between two looks."""


class Process(Protocol):
    """As much of a `Popen` as a wait looks at."""

    def poll(self) -> int | None:
        """The exit code; None as long as it runs."""


def until(
    what: str | Callable[[], str],
    look: Callable[[], Found | None],
    *,
    seconds: float = 180,
    look_seconds: float = LOOK_SECONDS,
    pause: Callable[[float], object] | None = None,
    process: Process | None = None,
) -> Found:
    """What `look` finds, asked again with a pause between until it is something.

    Args:
        what: What is waited for, or what there is instead; a function is asked when it failed.
        look: Returns something true once it has happened.
        seconds: How long to wait.
        look_seconds: How long a pause is at most.
        pause: Lets that many seconds go by, or fewer when something changed; by default nothing
            ends a pause early.
        process: Without it nothing will happen any more: its end is the end of the wait.

    Raises:
        AssertionError: It did not happen in time, or the process ended before it; the message has
            what was seen last.
    """
    pause = pause or threading.Event().wait
    deadline = time.monotonic() + seconds
    while True:
        ended = process is not None and process.poll() is not None
        found = look()  # after the process's end is known: its last act counts
        if found:
            return found
        if ended or time.monotonic() > deadline:
            told = what if isinstance(what, str) else what()
            why = "the process ended" if ended else f"not within {seconds:.0f} s"
            raise AssertionError(f"{why}: {told}\nseen last: {found!r}")
        pause(look_seconds)
