"""The Checkout port: finds the commit that a pipeline checked out."""

import re
from collections.abc import Collection
from pathlib import Path

import git

from reconciler.adapters.git.entries import REGULAR_MODES, SUBMODULE_MODE, is_text
from reconciler.model.errors import ToolError, UsageError
from reconciler.ports.repository import CheckoutState, CommitId

_TIMEOUT_SECONDS = 30.0
_REVISION = re.compile(r"[A-Za-z0-9][\w./^~-]{0,199}", re.ASCII)
"""It can never be an option of git."""

_RUNS_NOTHING = (
    # A folder of the checkout in the form of a bare repository would bring its own git config.
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false"),
    "--no-pager",
)
"""Options with which git starts no program that a repository's config names."""


class GitCheckout:
    """A Checkout of the git work tree around a directory, its files and its history; read-only."""

    def state(self, directory: str) -> CheckoutState | None:
        """See Checkout.state."""
        described = _ask(directory, "log", "--max-count=1", "--format=%H%x00%s")
        if described is None:
            return None
        name, _, subject = described.decode(errors="replace").strip().partition("\0")
        prefix = _ask(directory, "rev-parse", "--show-prefix")
        return CheckoutState(
            commit=CommitId(name),
            subject=subject,
            prefix=(prefix or b"").decode(errors="replace").strip().rstrip("/"),
        )

    def files(self, directory: str) -> tuple[str, ...]:
        """Return the tracked files below the directory, relative to it; none outside of git.

        As with `Repository.files`: no links, no submodules, no names that are not UTF-8.
        """
        return _entries(directory, REGULAR_MODES)

    def submodules(self, directory: str) -> tuple[str, ...]:
        """Return the paths of the submodules below the directory, relative to it."""
        return _entries(directory, {SUBMODULE_MODE})

    def content_at(self, directory: str, revision: str, name: str) -> bytes | None:
        """Return a file's content at a commit; None when there was none, or no such commit.

        `has_commit` tells these two apart.
        """
        _check_revision(revision)
        return _ask(directory, "show", "--no-textconv", f"{revision}:./{name}")

    def has_commit(self, directory: str, revision: str) -> bool:
        """Return whether a commit of this name is there."""
        _check_revision(revision)
        named = f"{revision}^{{commit}}"
        return _ask(directory, "rev-parse", "--verify", "--quiet", named) is not None

    def changed_since(self, directory: str, revision: str) -> frozenset[str] | None:
        """Return the paths below the directory that differ between a commit and the checkout.

        None when the commit is not there (a first push, a shallow clone, a rewritten branch).
        """
        _check_revision(revision)
        listed = _ask(
            directory,
            "diff", "--name-only", "--no-ext-diff", "--no-textconv", "--no-renames", "--relative",
            "-z", revision, "HEAD", "--",
        )  # fmt: skip
        return None if listed is None else frozenset(_names(listed))


def _entries(directory: str, modes: Collection[str]) -> tuple[str, ...]:
    """Return the tracked paths below the directory that have one of the modes, sorted."""
    listed = _ask(directory, "ls-files", "--stage", "-z") or b""
    entries = (entry.partition("\t") for entry in _names(listed))
    found = {path for facts, _, path in entries if facts.split()[0] in modes}
    return tuple(sorted(filter(is_text, found)))


def _names(listed: bytes) -> list[str]:
    """Return git's NUL-terminated names; a byte that is not UTF-8 becomes a surrogate."""
    return [each for each in listed.decode(errors="surrogateescape").split("\0") if each]


def _check_revision(revision: str) -> None:
    if _REVISION.fullmatch(revision) is None:
        raise UsageError("revision", f"{revision[:60]!r} is not a valid name of a commit")


def _ask(directory: str, *arguments: str) -> bytes | None:
    """Return the output of a git command in the directory, None when git fails.

    Raises:
        ToolError: git is missing, or refuses to read the checkout at all.
    """
    if not Path(directory).is_dir():
        return None
    command = ["git", *_RUNS_NOTHING, *arguments]
    try:
        status, out, errors = git.Git(directory).execute(
            command,
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
            kill_after_timeout=_TIMEOUT_SECONDS,
        )
    except git.GitCommandNotFound as missing:
        raise ToolError(
            "git", "the git program is not on the PATH", "install git 2.30 or newer"
        ) from missing
    if status != 0 and "dubious ownership" in str(errors):
        raise ToolError(
            directory,
            "the checkout belongs to another user, so git does not read it",
            "git config --global --add safe.directory DIR, or run as its owner",
        )
    return out if status == 0 else None
