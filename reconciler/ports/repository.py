"""The config repository: one branch of a git remote, read and committed to without a work tree."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

CommitId = NewType("CommitId", str)
"""The full hexadecimal name of a commit."""
NOT_FOLLOWED = "which is not followed"
"""What is said of a submodule where a config is looked for."""
MOVE_IT = "put the config into this repository, or run gitops for the submodule's own"
"""What to do about a config in a submodule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit, as far as the second loop reads it."""

    id: CommitId
    subject: str
    """First line of the message; untrusted text that is never interpreted."""
    message: str = ""
    """The whole message, trailers included."""

    @property
    def short(self) -> str:
        """Return the abbreviated name: 12 digits, which stay unique in large histories."""
        return self.id[:12]

    def trailers(self, key: str) -> tuple[str, ...]:
        """Return the values of the trailer `key` in the last paragraph of the message, in order."""
        paragraph = self.message.rstrip().rsplit("\n\n", 1)[-1]
        pairs = (line.partition(": ") for line in paragraph.splitlines())
        return tuple(value.strip() for name, _, value in pairs if name == key)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A regular file to write, or (content None) to remove, at a path of the repository."""

    path: str
    """Relative, with `/`, without `.` and `..`."""
    content: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFile:
    """A regular file in a commit."""

    path: str
    blob: str
    """The git blob id of the content: equal content has an equal id."""
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A file that a commit removed from the branch."""

    commit: CommitId
    before: CommitId
    """The commit that the branch had right before."""
    path: str


class Repository(Protocol):
    """A git remote, read through a local copy that may be lost at any time.

    Commits read or made stay readable until the next `fetch`. Every method may raise ToolError
    (git is missing or failed, the disk is full; nothing was changed at the remote).
    """

    def fetch(self) -> Commit:
        """Fetch the branch's newest commit, from scratch when the local copy is unusable.

        Raises:
            NotFound: The remote or its branch does not exist (any more).
            Forbidden: The remote does not accept the credentials.
            Unavailable: The remote could not be reached in time.
        """
        ...

    def files(self, commit: CommitId) -> tuple[TreeFile, ...]:
        """Return every regular file of a commit, sorted by path.

        Links, submodules and files whose names are not UTF-8 are left out.
        """
        ...

    def submodules(self, commit: CommitId) -> tuple[str, ...]:
        """Return the path of every submodule of a commit, sorted; what they hold is not fetched."""
        ...

    def read(self, commit: CommitId, path: str) -> bytes:
        """Return the content of one file of a commit.

        Raises:
            NotFound: The commit has no regular file there.
            InputError: A symbolic link, a path in a submodule, or a file larger than the limit of
                the adapter.
        """
        ...

    def last_change(
        self, commit: CommitId, paths: Sequence[str], *, deep: bool = False
    ) -> Commit | None:
        """Return the newest commit up to `commit` that changed one of the paths.

        Args:
            commit: Where the search starts.
            paths: Files or directories.
            deep: Whether to fetch more history when the answer is older than what was fetched.

        Returns:
            None when the commit is older than the history that was fetched, or with `deep` than the
            adapter's limits allow.

        Raises:
            PortError: With `deep`, as `fetch` does.
        """
        ...

    def since(self, commit: CommitId, ancestor: CommitId, commits_max: int) -> tuple[CommitId, ...]:
        """Return the commits after an ancestor up to `commit`, newest first, and the ancestor last.

        Of more than `commits_max` commits the newest are returned.
        """
        ...

    def changes(
        self, commit: CommitId, paths: Sequence[str], commits_max: int, *, deep: bool = False
    ) -> Iterator[CommitId]:
        """Yield the newest commits up to `commit` that changed one of the paths, newest first.

        The oldest commit that was fetched is among them when it has one of the paths.

        Args:
            commit: Where the search starts.
            paths: Files or directories.
            commits_max: How many commits are yielded at most.
            deep: Whether to fetch more history when more commits are asked for than were fetched.

        Raises:
            PortError: With `deep`, as `fetch` does.
        """
        ...

    def removals(self, commit: CommitId) -> Iterator[Removal]:
        """Yield the files that the branch lost up to `commit`, the newest removals first.

        A renamed file is one that was removed. More history is fetched when more are asked for than
        what was fetched has.

        Raises:
            PortError: As `fetch` does.
        """
        ...

    def describe(self, commit: CommitId) -> Commit:
        """Return subject and message of a commit that was fetched or made here."""
        ...

    def holds(self, commit: CommitId, changes: Sequence[FileChange]) -> bool:
        """Return whether a commit has exactly this content at these paths already."""
        ...

    def commit(
        self, parent: CommitId, changes: Sequence[FileChange], message: str
    ) -> Commit | None:
        """Make a commit on top of `parent` that changes these paths and no others.

        Returns:
            None when the parent has exactly this content already; nothing was committed.
        """
        ...

    def push(self, commit: CommitId, branch: str | None = None) -> None:
        """Push a commit to a branch of the remote (default: the one that is followed).

        It is never forced: the remote accepts it only when its branch is an ancestor.

        Raises:
            Conflict: The remote branch moved, or could not be written right now; fetch, decide
                again, commit on top.
            Forbidden: The remote does not accept the credentials or protects the branch.
            Unavailable: Not reached; nothing was pushed.
            OutcomeUnknown: Sent, but the reply was lost; fetch before deciding again.
        """
        ...

    def heads(self, branches: Sequence[str]) -> Mapping[str, CommitId]:
        """Return the newest commit of those of these branches that the remote has now.

        The commits are not fetched.

        Raises:
            PortError: As `fetch` does.
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
    """A directory that a pipeline checked out."""

    def state(self, directory: str) -> CheckoutState | None:
        """Return the commit a directory is at; None outside of a git work tree."""
        ...
