"""Shows what happens: a live line on a terminal, plain lines otherwise."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console

PLAIN_EVERY_SECONDS = 3.0

Show = Callable[[str], None]
"""Replaces the state that is shown by a newer one."""


class Narrator:
    """Prints steps with their times, and the current state while something runs."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stdout, highlight=False, soft_wrap=True)
        self._began = monotonic()
        self._last_plain = 0.0

    @property
    def console(self) -> Console:
        """Return the console for all output."""
        return self._console

    def elapsed_seconds(self) -> float:
        """Return the seconds since the demo began."""
        return monotonic() - self._began

    def say(self, text: str) -> None:
        """Print one line with the time."""
        self._console.print(f"[dim]{self.elapsed_seconds():6.1f}s[/]  {text}")

    def detail(self, text: str) -> None:
        """Print a line that belongs to the previous step."""
        self._console.print(f"          [dim]{text}[/]")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Announce a step, show that it is running, and time it."""
        began = monotonic()
        self.say(f"[bold]{title}[/]")
        if self._console.is_terminal:
            with self._console.status(title):
                yield
        else:
            yield
        self.detail(f"done in {monotonic() - began:.1f} s")

    @contextmanager
    def watching(self) -> Iterator[Show]:
        """Yield what updates a live line; without a terminal, a line every few seconds."""
        if self._console.is_terminal:
            with self._console.status("") as status:
                yield status.update
        else:
            yield self._plain

    def _plain(self, text: str) -> None:
        now = monotonic()
        if now - self._last_plain >= PLAIN_EVERY_SECONDS:
            self._last_plain = now
            self.say(text)
