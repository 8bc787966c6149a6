"""Sends messages to people, where they talk to each other."""

from typing import Protocol


class Notifier(Protocol):
    """A channel that people read."""

    def notify(self, text: str) -> None:
        """Send a message of one or more lines; return at once, whether or not it arrives.

        A channel that is slow, full or gone loses messages and does not delay the caller.
        """
        ...
