"""Which commits of a branch removed files, from what `git log` prints."""

from collections.abc import Iterator
from typing import Final

from reconciler.ports.repository import CommitId, Removal

REMOVALS_LOG: Final = (
    "-c", "core.quotePath=false",
    "log", "--first-parent", "-m", "--no-renames", "--diff-filter=D", "--name-only",
    "--no-show-signature", "--max-count=1000", "--format=%x00%H %P",
)  # fmt: skip
"""Prints commits that removed files, newest first: a line with NUL, the commit and its parents, and
then the files. Of a merge it shows what it removed from the branch that it was merged into."""


def removals_of(raw: bytes) -> tuple[Removal, ...]:
    """Return the removals of a log; files whose names git writes in quotes are left out."""
    return tuple(_removals(raw))


def _removals(raw: bytes) -> Iterator[Removal]:
    commit = before = CommitId("")
    for line in raw.decode(errors="replace").split("\n"):
        if line.startswith("\0"):
            commit, before, *_ = map(CommitId, line[1:].split())
        elif line and not line.startswith('"'):
            yield Removal(commit=commit, before=before, path=line)
