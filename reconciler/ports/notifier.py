"""Telling people, where they talk to each other."""

from typing import Protocol


class Notifier(Protocol):
    """A channel that people read."""

    def notify(self, text: str) -> None:
        """Show a message of one or more lines; returns at once, whatever becomes of it.

        A channel that is slow, full or gone loses messages and does not delay the caller.
        """
        ...
