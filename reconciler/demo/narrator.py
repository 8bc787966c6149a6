"""Tells the story: a live line on a terminal, plain lines without one."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console

PLAIN_EVERY_SECONDS = 3.0

Show = Callable[[str], None]
"""Puts a newer state in place of the one that is shown."""


class Narrator:
    """Prints steps with their times and the state of things while something runs."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stdout, highlight=False, soft_wrap=True)
        self._began = monotonic()
        self._last_plain = 0.0

    @property
    def console(self) -> Console:
        """Where everything is printed."""
        return self._console

    def elapsed_seconds(self) -> float:
        """Since the demo began."""
        return monotonic() - self._began

    def say(self, text: str) -> None:
        """One line with the time."""
        self._console.print(f"[dim]{self.elapsed_seconds():6.1f}s[/]  {text}")

    def detail(self, text: str) -> None:
        """A line that belongs to the step before."""
        self._console.print(f"          [dim]{text}[/]")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A step: announced, shown as under way, and timed."""
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
        """A line that follows what happens; without a terminal one line every few seconds."""
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
