"""The Repository port: a bare, shallow copy in which commits are built without a work tree."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from reconciler.adapters.git.dates import as_date
from reconciler.adapters.git.entries import (
    LINK_MODE,
    REGULAR_MODES,
    SUBMODULE_MODE,
    Entry,
    checked_path,
    differs,
    is_text,
    submodule_of,
)
from reconciler.adapters.git.local_copy import locked, size
from reconciler.adapters.git.process import MARKER, GitProcess
from reconciler.adapters.git.removals import REMOVALS_LOG, removals_of
from reconciler.adapters.git.settings import GitSettings
from reconciler.machine.private_folder import PrivateFolder
from reconciler.model.errors import (
    Conflict,
    InputError,
    NotFound,
    ToolError,
)
from reconciler.ports.repository import (
    MOVE_IT,
    NOT_FOLLOWED,
    Commit,
    CommitId,
    FileChange,
    Removal,
    TreeFile,
)

_TRACKING = "refs/remotes/origin/followed"
_DEEPER = 10
"""By this factor more history is fetched when a commit is older than what was fetched."""
_DEPTH_MAX = 50_000


class GitRepository:
    """One branch of one remote. Not thread-safe."""

    def __init__(self, settings: GitSettings) -> None:
        settings.assert_not_a_file()
        self._settings = settings
        self._private = PrivateFolder("git")
        directory = settings.directory or self._private.path / "copy.git"
        self._git = GitProcess(settings, directory, self._private.path)
        self._lock = locked(settings.directory) if settings.directory else None
        self._trusted = False
        """Whether this object has checked or created the local copy, without a failure since."""
        self._overgrown = False
        """Whether the copy has so many files that a new one is smaller."""
        self._depth = settings.depth
        """How many commits of history are fetched now."""
        self._listed: tuple[CommitId, Mapping[str, Entry]] | None = None
        """The entries of the commit that was read last, which all clusters share."""

    def fetch(self) -> Commit:
        """See Repository.fetch. An unusable or overgrown copy is deleted and fetched again."""
        if self._overgrown:
            self._discard()
        fresh = self._prepare()
        try:
            return self._fetch_once()
        except ToolError:
            if fresh:
                raise
        self._discard()
        self._prepare()
        return self._fetch_once()

    def files(self, commit: CommitId) -> tuple[TreeFile, ...]:
        """See Repository.files."""
        regular = (
            TreeFile(path=path, blob=entry.blob, size_bytes=entry.size_bytes)
            for path, entry in self._entries(commit).items()
            if entry.mode in REGULAR_MODES and is_text(path)
        )
        return tuple(sorted(regular, key=lambda file: file.path))

    def submodules(self, commit: CommitId) -> tuple[str, ...]:
        """See Repository.submodules."""
        entries = self._entries(commit).items()
        linked = (path for path, entry in entries if entry.mode == SUBMODULE_MODE)
        return tuple(sorted(filter(is_text, linked)))

    def read(self, commit: CommitId, path: str) -> bytes:
        """See Repository.read."""
        entry = self._entries(commit).get(checked_path(path))
        if entry is not None and entry.mode == LINK_MODE:
            raise InputError(path, "is a symbolic link", "replace it by the file that it names")
        if entry is None or entry.mode not in REGULAR_MODES:
            within = submodule_of(path, self.submodules(commit))
            if within:
                raise InputError(path, f"lies in the submodule {within}, {NOT_FOLLOWED}", MOVE_IT)
            raise NotFound(f"{path} at {commit[:12]}", "the commit has no regular file there")
        if entry.size_bytes > self._settings.file_bytes_max:
            limit = self._settings.file_bytes_max
            raise InputError(path, f"{entry.size_bytes} bytes, more than the limit of {limit}")
        return self._local("cat-file", "blob", entry.blob)

    def last_change(
        self, commit: CommitId, paths: Sequence[str], *, deep: bool = False
    ) -> Commit | None:
        """See Repository.last_change."""
        checked = [checked_path(path) for path in paths]
        found = self._last_change(commit, checked)
        while found is None and deep and self._deepen():
            found = self._last_change(commit, checked)
        return found

    def _last_change(self, commit: CommitId, checked: Sequence[str]) -> Commit | None:
        found = self._local("rev-list", "--max-count=1", commit, "--", *checked).decode().strip()
        # Git shows the oldest fetched commit as if it had added every file.
        known = found and found not in self._oldest_fetched()
        return self.describe(CommitId(found)) if known else None

    def _oldest_fetched(self) -> Sequence[str]:
        """Return the commits whose parents were not fetched."""
        boundary = self._git.directory / "shallow"
        return boundary.read_text().split() if boundary.exists() else ()

    def _deepen(self) -> bool:
        """Fetch more history; return False when there is no more, or the limit is reached.

        The depth stays increased, since the next commit will need the older history again.
        """
        deeper = self._depth * _DEEPER
        largest = size(self._git.directory)[0] * _DEEPER
        if (
            not self._oldest_fetched()
            or deeper > _DEPTH_MAX
            or largest > self._settings.clone_bytes_max
        ):
            return False
        self._talk_fetch(deeper, f"refs/heads/{self._settings.branch}")
        self._depth = deeper
        return True

    def since(self, commit: CommitId, ancestor: CommitId, commits_max: int) -> tuple[CommitId, ...]:
        """See Repository.since."""
        listed = self._text("rev-list", f"--max-count={commits_max - 1}", commit, f"^{ancestor}")
        return (*(CommitId(name) for name in listed.split()), ancestor)

    def changes(
        self, commit: CommitId, paths: Sequence[str], commits_max: int, *, deep: bool = False
    ) -> Iterator[CommitId]:
        """See Repository.changes."""
        search = ("rev-list", f"--max-count={commits_max}", commit, "--", *map(checked_path, paths))
        yielded: set[str] = set()
        while True:
            for name in self._text(*search).split():
                if name not in yielded and len(yielded) < commits_max:
                    yielded.add(name)
                    yield CommitId(name)
            if len(yielded) >= commits_max or not deep or not self._deepen():
                return

    def removals(self, commit: CommitId) -> Iterator[Removal]:
        """See Repository.removals."""
        yielded: set[CommitId] = set()
        while True:
            # A history that is too large for git's limits is no damage of the copy.
            found = removals_of(self._git.ask(*REMOVALS_LOG, commit) or b"")
            yield from (removal for removal in found if removal.commit not in yielded)
            yielded |= {removal.commit for removal in found}
            if not self._deepen():
                return

    def describe(self, commit: CommitId) -> Commit:
        """See Repository.describe."""
        form = "--format=%H%x00%s%x00%B"
        raw = self._local("log", "--max-count=1", "--no-show-signature", form, commit)
        name, subject, message = raw.decode(errors="replace").split("\0", 2)
        return Commit(id=CommitId(name), subject=subject, message=message.strip())

    def holds(self, commit: CommitId, changes: Sequence[FileChange]) -> bool:
        """See Repository.holds."""
        return not self._differing(commit, changes)

    def commit(
        self, parent: CommitId, changes: Sequence[FileChange], message: str
    ) -> Commit | None:
        """See Repository.commit. Equal arguments make the same commit again.

        Its dates are the parent's, so that two writers with the same decision make the same commit.
        """
        changes = self._differing(parent, changes)
        if not changes:
            return None
        tree = self._tree_with(parent, changes)
        if tree == self._text("rev-parse", f"{parent}^{{tree}}"):
            return None
        shown = ("--no-show-signature", "--date=raw", "--format=%cd")
        date = as_date(self._text("log", "--max-count=1", *shown, parent))
        # commit-tree has no option for dates; GitPython passes the environment on.
        raw = self._git.commit_tree(tree, parent, message.encode(), date)
        made = CommitId(raw.decode().strip())
        self._assert_only(parent, made, {change.path for change in changes})
        return self.describe(made)

    def _differing(self, commit: CommitId, changes: Sequence[FileChange]) -> list[FileChange]:
        there = self._entries(commit)
        return [c for c in changes if differs(there.get(checked_path(c.path)), c)]

    def push(self, commit: CommitId, branch: str | None = None) -> None:
        """See Repository.push."""
        target = branch or self._settings.branch
        refspec = f"{commit}:refs/heads/{target}"
        self._git.talk(
            "push", "push", "--quiet", "--no-verify", "--", self._settings.address, refspec,
            branch=target,
        )  # fmt: skip

    def heads(self, branches: Sequence[str]) -> Mapping[str, CommitId]:
        """See Repository.heads."""
        names = [f"refs/heads/{branch}" for branch in branches]
        listed = self._git.talk("fetch", "ls-remote", "--", self._settings.address, *names)
        lines = (line.partition("\t") for line in listed.decode(errors="replace").splitlines())
        there = {name: CommitId(commit) for commit, _, name in lines}
        # git also lists what only ends like the name.
        return {name.removeprefix("refs/heads/"): there[name] for name in names if name in there}

    def close(self) -> None:
        """See Repository.close."""
        self._private.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _prepare(self) -> bool:
        """Make the local copy usable; return True when it is a new one."""
        directory = self._git.directory
        if self._trusted and (directory / "HEAD").is_file():
            return False
        usable = (
            self._is_ours()
            and (directory / "HEAD").is_file()
            and self._git.ask("rev-parse", "--is-bare-repository") == b"true\n"
            and self._git.ask("fsck", "--connectivity-only", "--no-dangling") is not None
        )
        if not usable:
            self._discard()
            self._git.initialise()
        self._trusted = True
        return not usable

    def _is_ours(self) -> bool:
        return (self._git.directory / MARKER).is_file()

    def _discard(self) -> None:
        directory = self._git.directory
        if directory.exists() and not directory.is_dir():
            raise ToolError(str(directory), "is a file", "name an empty directory")
        if not self._is_ours() and directory.exists() and any(directory.iterdir()):
            raise ToolError(
                str(directory), "not empty and no git copy of ours", "name an empty directory"
            )
        shutil.rmtree(directory, ignore_errors=True)
        self._trusted, self._listed, self._depth = False, None, self._settings.depth
        self._overgrown = False

    def _fetch_once(self) -> Commit:
        settings = self._settings
        self._talk_fetch(self._depth, f"+refs/heads/{settings.branch}:{_TRACKING}")
        tip = CommitId(self._git.run("rev-parse", "--verify", _TRACKING).decode().strip())
        self._git.run("ls-tree", "-r", "--name-only", "-z", tip)
        size_bytes, files = size(self._git.directory)
        self._overgrown = files > settings.copy_files_max
        if size_bytes > settings.clone_bytes_max:
            self._discard()
            raise ToolError(
                settings.shown,
                f"{size_bytes} bytes, more than the limit of {settings.clone_bytes_max}",
                "keep the sector config in a repository of its own",
            )
        return self.describe(tip)

    def _talk_fetch(self, depth: int, refspec: str) -> None:
        self._git.talk(
            "fetch", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
            f"--depth={depth}", "--", self._settings.address, refspec,
        )  # fmt: skip

    def _local(self, *arguments: str) -> bytes:
        """Read locally: this can only fail when the local copy is damaged."""
        try:
            return self._git.run(*arguments)
        except ToolError as error:
            self._discard()
            raise Conflict(
                "the local copy of the repository",
                f"damaged: {error.what}",
                "it is fetched again at the next turn",
            ) from error

    def _text(self, *arguments: str) -> str:
        return self._local(*arguments).decode().strip()

    def _entries(self, commit: CommitId) -> Mapping[str, Entry]:
        """Return all entries of a commit, by path."""
        if self._listed is not None and self._listed[0] == commit:
            return self._listed[1]
        raw = self._local("ls-tree", "-r", "-z", "--long", "--full-tree", commit)
        if raw.count(b"\0") > self._settings.files_max:
            raise InputError(
                self._settings.shown,
                f"commit {commit[:12]} has more than {self._settings.files_max} files",
                "keep the sector configs in a repository of their own",
            )
        entries = {}
        for line in raw.decode(errors="surrogateescape").split("\0")[:-1]:
            facts, _, path = line.partition("\t")
            self._assert_short(path)
            mode, _, blob, size = facts.split()
            size_bytes = int(size) if size.isdecimal() else 0  # a submodule has no size
            entries[path] = Entry(mode=mode, blob=blob, size_bytes=size_bytes)
        self._listed = commit, entries
        return entries

    def _assert_short(self, path: str) -> None:
        settings = self._settings
        if len(path) > settings.path_bytes_max or path.count("/") >= settings.path_depth_max:
            raise InputError(
                settings.shown,
                f"the path {path[:40]!r}… has more than {settings.path_bytes_max} bytes or"
                f" {settings.path_depth_max} levels",
                "keep the sector configs in a repository of their own",
            )

    def _tree_with(self, parent: CommitId, changes: Sequence[FileChange]) -> str:
        """Return the id of the parent's tree with the changes made."""
        self._assert_room(parent, changes)
        index = self._git.directory / "reconciler-index"
        # No other process writes here: an existing lock was left by a git that was killed.
        for left in (index, index.with_suffix(".lock")):
            left.unlink(missing_ok=True)
        try:
            self._git.run("read-tree", parent, index=index)
            lines = "".join(self._index_line(change) for change in changes)
            self._git.run("update-index", "-z", "--index-info", stdin=lines.encode(), index=index)
            return self._git.run("write-tree", index=index).decode().strip()
        finally:
            index.unlink(missing_ok=True)

    def _assert_room(self, parent: CommitId, changes: Sequence[FileChange]) -> None:
        """Refuse paths where git would silently replace a file by a directory, or the reverse."""
        entries = self._entries(parent)
        taken = set(entries)
        folders = {str(above) for name in taken for above in PurePosixPath(name).parents}
        submodules = self.submodules(parent)
        for change in changes:
            path = checked_path(change.path)
            there = entries.get(path)
            if within := submodule_of(path, submodules):
                what = f"lies in the submodule {within}, which belongs to another repository"
                raise InputError(change.path, what, "choose another output directory")
            if change.content is not None and there is not None and there.mode == LINK_MODE:
                raise InputError(
                    change.path,
                    "is a symbolic link, which is not replaced by a rendered file",
                    "remove the link or choose another output directory",
                )
            above = {str(folder) for folder in PurePosixPath(path).parents} - {"."}
            if change.content is not None and (above & taken or path in folders):
                raise InputError(
                    change.path,
                    "does not fit into the repository: a file and a directory share a name",
                    "choose another output directory",
                )

    def _index_line(self, change: FileChange) -> str:
        path = checked_path(change.path)
        if change.content is None:
            return f"0 {'0' * 40}\t{path}\0"
        blob = self._git.run("hash-object", "-w", "--stdin", stdin=change.content)
        return f"100644 {blob.decode().strip()}\t{path}\0"

    def _assert_only(self, parent: CommitId, made: CommitId, allowed: set[str]) -> None:
        raw = self._local("diff-tree", "-r", "-z", "--name-only", "--no-renames", parent, made)
        strangers = {name for name in raw.decode().split("\0") if name} - allowed
        if strangers:
            raise InputError(
                f"commit {made[:12]}",
                f"would change files that were not rendered: {sorted(strangers)[:3]}",
                "the repository has a tree that git itself does not make: see git fsck",
            )
