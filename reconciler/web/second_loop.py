"""The cause for a second loop whose turns fail."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from reconciler.model.text import duration
from reconciler.web.cause import Cause, Seen

FAILS_SECONDS: Final = 600.0
"""A forge that restarts, or a push that loses against others for a while, is no trouble."""


def second_loop_fails(seen: Seen) -> Iterator[Cause]:
    """Yield why the second loop's turns fail, once every one has for some minutes."""
    seconds = seen.second_loop_failing_seconds
    if seconds >= FAILS_SECONDS:
        why = seen.view.second_loop.removeprefix("failed: ")
        yield Cause(
            kind="second-loop-fails",
            level="degraded",
            headline="Second loop fails",
            detail=f"for {duration(timedelta(seconds=seconds))}: {why}",
            remedy="check the repository's address, its credentials and what the remote says;"
            " changes of the branch may not come into force meanwhile",
        )
