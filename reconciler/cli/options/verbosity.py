"""How verbose the program is: counted from `-v` before and after the command's name."""

from typing import Final

TRACEBACK_LEVEL: Final = 3
"""From `-vvv` on, an error comes with its traceback."""


class _State:
    """The one level of this process."""

    level = 0


def reset() -> None:
    """Reset to silence, for a new command line."""
    _State.level = 0


def raise_to(level: int) -> None:
    """Raise the level to at least this, 0 to 3."""
    _State.level = max(_State.level, min(level, TRACEBACK_LEVEL))


def current() -> int:
    """Return the level, 0 to 3."""
    return _State.level
