"""Says in one line what a bug was, for places where it must not stop everything else."""

from traceback import walk_tb
from typing import Final

_MESSAGE_MAX: Final = 120
_PACKAGE: Final = "reconciler"


def bug_in_words(error: Exception) -> str:
    """Return what failed and, where it is known, at which line of this program."""
    frames = ((f.f_code.co_filename.split("/"), line) for f, line in walk_tb(error.__traceback__))
    ours = [(parts, line) for parts, line in frames if _PACKAGE in parts]
    message = " ".join(str(error).split())[:_MESSAGE_MAX]
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if ours:
        parts, line = ours[-1]
        text += f", at {'/'.join(parts[-2:])}:{line}"
    return text
