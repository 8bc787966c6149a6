"""Entries of a tree or an index, and which of them count as files."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePosixPath

from reconciler.model.errors import UsageError
from reconciler.ports.repository import FileChange

REGULAR_MODES = frozenset({"100644", "100755"})
"""The modes of regular files, as git writes them: no links, no submodules."""
LINK_MODE = "120000"
"""A symbolic link."""
SUBMODULE_MODE = "160000"
"""A submodule: only the name of a commit of another repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file, link or submodule of a commit."""

    mode: str
    blob: str
    size_bytes: int


def is_text(path: str) -> bool:
    """Return whether git's name of a file is UTF-8; others can be neither rendered nor shown."""
    return not any("\ud800" <= character <= "\udfff" for character in path)


def submodule_of(path: str, submodules: Collection[str]) -> str:
    """Return the submodule that a path is or lies in; empty when there is none."""
    above = (path, *map(str, PurePosixPath(path).parents))
    return next((each for each in above if each in submodules), "")


def blob_name(content: bytes, digits: int) -> str:
    """Return git's blob id of a content, with the repository's number of digits.

    Source: git's "Git Internals - Git Objects"; SHA-256 repositories since 2.29.
    """
    framed = b"blob %d\0" % len(content) + content
    return hashlib.new(
        "sha256" if digits == 64 else "sha1", framed, usedforsecurity=False
    ).hexdigest()


def differs(there: Entry | None, change: FileChange) -> bool:
    """Return whether a commit with this change would differ at its path."""
    if there is None or change.content is None:
        return (there is None) != (change.content is None)
    return there.mode != "100644" or there.blob != blob_name(change.content, len(there.blob))


def checked_path(path: str) -> str:
    """Return a path in git's form.

    Raises:
        UsageError: It could leave the repository or reach into git's own files.
    """
    parts = PurePosixPath(path).parts
    odd = not parts or path != "/".join(parts) or any(c in path for c in "\0\n")
    if odd or path.startswith(("/", ":")) or any(p.lower() in {"..", ".git"} for p in parts):
        raise UsageError("path", f"{path[:80]!r} is not a path inside the repository")
    return path
