"""The config repository: one branch of a git remote, read and extended without a work tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

CommitId = NewType("CommitId", str)
"""The full hexadecimal name of a commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit, as far as the second loop reads it."""

    id: CommitId
    subject: str
    """First line of the message; text of the commit's author, never to be interpreted."""
    message: str = ""
    """The whole message, trailers included."""

    @property
    def short(self) -> str:
        """The name as people write it: 12 digits, which stay unique in large histories."""
        return self.id[:12]

    def trailers(self, key: str) -> tuple[str, ...]:
        """Values of the trailer `key` in the last paragraph of the message, in order."""
        paragraph = self.message.rstrip().rsplit("\n\n", 1)[-1]
        pairs = (line.partition(": ") for line in paragraph.splitlines())
        return tuple(value.strip() for name, _, value in pairs if name == key)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A regular file to be written, or (content None) removed, at a path of the repository."""

    path: str
    """Relative, with `/`, without `.` and `..`."""
    content: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFile:
    """A regular file that a commit holds."""

    path: str
    blob: str
    """Git's name of the content: the same content has the same name."""
    size_bytes: int


class Repository(Protocol):
    """A git remote, seen through a local copy that may be lost at any time.

    Commits read or made stay readable until the next `fetch`. Every method may raise ToolError
    (git is missing or failed, the disk is full; nothing was changed at the remote).
    """

    def fetch(self) -> Commit:
        """Bring the branch's newest commit here, from scratch when the local copy is unusable.

        Raises:
            NotFound: The remote or its branch does not exist (any more).
            Forbidden: The remote wants other credentials.
            Unavailable: The remote was not reached in time.
        """
        ...

    def files(self, commit: CommitId) -> tuple[TreeFile, ...]:
        """Every regular file of a commit, sorted by path.

        Links, submodules and files whose names are not UTF-8 are left out.
        """
        ...

    def read(self, commit: CommitId, path: str) -> bytes:
        """The content of one file of a commit.

        Raises:
            NotFound: The commit has no regular file there.
            InputError: A symbolic link, or a file larger than the limit of the adapter.
        """
        ...

    def last_change(
        self, commit: CommitId, paths: Sequence[str], *, deep: bool = False
    ) -> Commit | None:
        """The newest commit up to `commit` that changed one of the paths.

        Args:
            commit: Where to begin.
            paths: Files or directories.
            deep: Whether to fetch more of the history when the answer lies beyond.

        Returns:
            None when it lies beyond the part of history that was fetched, or with `deep` beyond
            what the adapter's limits allow.

        Raises:
            PortError: With `deep`, as `fetch` does.
        """
        ...

    def since(self, commit: CommitId, ancestor: CommitId, commits_max: int) -> tuple[CommitId, ...]:
        """The commits after an ancestor up to `commit`, newest first, and the ancestor at the end.

        Of more than `commits_max` the newest are given.
        """
        ...

    def changes(self, commit: CommitId, path: str, commits_max: int) -> tuple[CommitId, ...]:
        """The newest commits up to `commit` that changed a file, newest first.

        Only those in the part of history that was fetched.
        """
        ...

    def describe(self, commit: CommitId) -> Commit:
        """Subject and message of a commit that was fetched or made here."""
        ...

    def holds(self, commit: CommitId, changes: Sequence[FileChange]) -> bool:
        """Whether a commit holds exactly that already at these paths."""
        ...

    def commit(
        self, parent: CommitId, changes: Sequence[FileChange], message: str
    ) -> Commit | None:
        """Make a commit on top of `parent` that changes these paths and no others.

        Returns:
            None when the parent holds exactly that already: nothing was committed.
        """
        ...

    def push(self, commit: CommitId, branch: str | None = None) -> None:
        """Add a commit to a branch of the remote (default: the one that is followed).

        Never forced: the remote takes it only when its branch is an ancestor.

        Raises:
            Conflict: The remote moved on; fetch, decide again, commit on top.
            Forbidden: The remote wants other credentials or protects the branch.
            Unavailable: Not reached; nothing was pushed.
            OutcomeUnknown: Sent, but the reply was lost; fetch before deciding again.
        """
        ...

    def close(self) -> None:
        """Remove the local copy when it was a temporary one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutState:
    """Which commit a directory was checked out from."""

    commit: CommitId
    subject: str
    prefix: str
    """The directory's path inside the work tree, with `/`; empty for its root."""


class Checkout(Protocol):
    """A directory that someone else (a pipeline) checked out."""

    def state(self, directory: str) -> CheckoutState | None:
        """The commit a directory is at; None when it is in no git work tree."""
        ...


class CheckoutHistory(Protocol):
    """What a checkout holds and how it differs from an older commit."""

    def files(self, directory: str) -> tuple[str, ...]:
        """Paths of the tracked files below the directory, relative to it; none outside of git.

        As with `Repository.files`: no links, no submodules, no names that are not UTF-8.
        """
        ...

    def content_at(self, directory: str, revision: str, name: str) -> bytes | None:
        """What a file of the directory held at a commit; None when there was none, or no commit."""
        ...

    def changed_since(self, directory: str, revision: str) -> frozenset[str] | None:
        """Paths below the directory that differ between a commit and the one checked out.

        None when the commit is not there (a first push, a shallow clone, a rewritten branch).
        """
        ...
