"""Folders of one process in the temporary directory, and the removal of those left behind.

Such a folder holds the copy of a repository, Terraform's providers, a key to sign commits with. A
process that ends removes its own; one that is killed cannot. When a container is restarted with the
same temporary directory, these would add up until the disk is full.
"""

import fcntl
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

PREFIX = "fleet-reconciler-"
"""The prefix of all such folders' names."""


class PrivateFolder:
    """A new folder that only this user may enter; `close` removes it.

    It is locked (flock) until then. Before it is created, this user's unlocked folders of the same
    purpose are removed.

    Args:
        purpose: Part of its name.
        outlived_seconds: An unlocked folder that was changed within this time is not removed: a
            program in it may still run after its process was killed.

    Raises:
        OSError: It cannot be created.
    """

    def __init__(self, purpose: str, outlived_seconds: float = 0) -> None:
        prefix = f"{PREFIX}{purpose}-"
        _remove_what_was_left(prefix, outlived_seconds)
        self.path, self._lock = _make_folder(prefix)

    def close(self) -> None:
        """Remove it with its content. A second call does nothing."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def _make_folder(prefix: str) -> tuple[Path, int]:
    while True:
        path = Path(mkdtemp(prefix=prefix))
        with suppress(FileNotFoundError):  # removed by a process that saw it before it was locked
            lock = _open_folder(path)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.is_dir():
                return path, lock
            os.close(lock)


def _remove_what_was_left(prefix: str, outlived_seconds: float) -> None:
    found: list[Path] = []
    # A temporary directory can be writable without being readable.
    with suppress(PermissionError), os.scandir(gettempdir()) as entries:
        found = [Path(entry.path) for entry in entries if entry.name.startswith(prefix)]
    for path in found:
        with suppress(OSError):  # not a folder, somebody else's, or in use
            _remove_unless_held(path, outlived_seconds)


def _remove_unless_held(path: Path, outlived_seconds: float) -> None:
    lock = _open_folder(path)
    try:
        about = os.fstat(lock)
        old = time.time() - about.st_mtime >= outlived_seconds  # noqa: TID251 - as files have it
        if about.st_uid == os.geteuid() and old:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def _open_folder(path: Path) -> int:
    """Return a handle of the folder itself, never of a link's destination."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
