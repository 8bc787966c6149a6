"""Folders of one process in the temporary directory, and what processes that were killed left.

Such a folder holds the copy of a repository, Terraform's providers, a key to sign commits with. A
process that ends removes its own; one that is killed cannot. Where a container is started again
with the same temporary directory, what it left would add up until the disk is full.
"""

import fcntl
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

PREFIX = "fleet-reconciler-"
"""What the names of all such folders begin with."""


class PrivateFolder:
    """A new folder that only this user may enter; `close` removes it.

    It is locked (flock) until then. Before it is made, folders of the same purpose are removed that
    belong to this user and that no process has locked.

    Args:
        purpose: Part of its name.
        outlived_seconds: An unlocked folder that was changed within this time is not removed: a
            program that was started there may still run after its process was killed.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, purpose: str, outlived_seconds: float = 0) -> None:
        prefix = f"{PREFIX}{purpose}-"
        _remove_what_was_left(prefix, outlived_seconds)
        self.path, self._lock = _made(prefix)

    def close(self) -> None:
        """Remove it with all that is in it. A second call does nothing."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def _made(prefix: str) -> tuple[Path, int]:
    while True:
        path = Path(mkdtemp(prefix=prefix))
        with suppress(FileNotFoundError):  # removed by a process that saw it before it was locked
            lock = _opened(path)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.is_dir():
                return path, lock
            os.close(lock)


def _remove_what_was_left(prefix: str, outlived_seconds: float) -> None:
    found: list[Path] = []
    # A temporary directory need not be readable to be written to.
    with suppress(PermissionError), os.scandir(gettempdir()) as entries:
        found = [Path(entry.path) for entry in entries if entry.name.startswith(prefix)]
    for path in found:
        with suppress(OSError):  # it is no folder, somebody else's, or in use
            _remove_unless_held(path, outlived_seconds)


def _remove_unless_held(path: Path, outlived_seconds: float) -> None:
    lock = _opened(path)
    try:
        about = os.fstat(lock)
        old = time.time() - about.st_mtime >= outlived_seconds  # noqa: TID251 - as files have it
        if about.st_uid == os.geteuid() and old:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def _opened(path: Path) -> int:
    """A handle of the folder itself, never of what a link leads to."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
